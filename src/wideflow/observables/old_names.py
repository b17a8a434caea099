"""Names of version 0.1 that a user may have typed; they go on working until version 0.3."""

from .kernels import KernelDistance, KernelMaxEigenvalue, KernelMinEigenvalue

__all__ = ["KernelChange", "KernelDrift", "KernelGap", "KernelMovement", "KernelTop"]

KernelGap = KernelMinEigenvalue
KernelTop = KernelMaxEigenvalue


def KernelDrift(samples: int | None = None, output: int = 0) -> KernelDistance:
    """`KernelDistance("spectral", relative=False)`.

    Args:
        samples, output: as there.
    """
    return KernelDistance("spectral", False, samples, output)


def KernelChange(samples: int | None = None) -> KernelDistance:
    """`KernelDistance()`: the relative Frobenius norm.

    Args:
        samples: as there.
    """
    return KernelDistance(samples=samples)


KernelMovement = KernelChange
