"""Architectures as descriptions: layers, chains and residuals without a single array."""

from ._core.architecture import (
    AbstractLayer,
    Activate,
    AveragePool,
    Chain,
    Conv,
    Dense,
    Flatten,
    GlobalAveragePool,
    LayerNorm,
    Residual,
    SumPool,
    mlp,
    with_width,
)

__all__ = [
    "AbstractLayer",
    "Activate",
    "AveragePool",
    "Chain",
    "Conv",
    "Dense",
    "Flatten",
    "GlobalAveragePool",
    "LayerNorm",
    "Residual",
    "SumPool",
    "mlp",
    "with_width",
]
