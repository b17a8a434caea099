"""Embeddings: what is done to inputs before the trained layer sees them."""

from .models import embeddings as _embeddings
from .models.embeddings import *

__all__: list[str] = []  # type checkers read this form
__all__ += _embeddings.__all__
