"""Networks: one architecture a file."""

from . import embeddings as embeddings
from .base import AbstractModel as AbstractModel
from .shallow import Shallow as Shallow
