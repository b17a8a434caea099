"""Architectures as descriptions: layers without arrays, read by `Deep` as networks and by `limits`
as kernels.
"""

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
    SelfAttention,
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
    "SelfAttention",
    "SumPool",
    "mlp",
    "with_width",
]
