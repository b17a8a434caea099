"""Embeddings: what is done to inputs before the trained layer sees them."""

from .models.embeddings import (
    AbstractEmbedding,
    DeepRandomFeatures,
    Function,
    Identity,
    Quadratic,
    RandomFeatures,
    virtual_inputs,
)

__all__ = [
    "AbstractEmbedding",
    "DeepRandomFeatures",
    "Function",
    "Identity",
    "Quadratic",
    "RandomFeatures",
    "virtual_inputs",
]
