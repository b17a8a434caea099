"""Diagonal linear networks (woodworth2020) on wideflow's grid."""

from .model import Diagonal as Diagonal
from .theorem import ImplicitBias as ImplicitBias
