"""Data: what networks are trained on."""

from .dataset import Dataset as Dataset, one_hot as one_hot
from .synthetic import (
    random_labels as random_labels,
    sphere as sphere,
    sphere_sines as sphere_sines,
)
