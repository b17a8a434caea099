"""Losses, each with its factors stated; outputs and targets are (sample,) or (sample, output)."""

from .dynamics.bounded_losses import (
    DeadZoneHuber,
    Huber,
    LogCosh,
    Logistic,
    LossClass,
    PseudoHuber,
    ScaledCrossEntropy,
    loss_class,
)
from .dynamics.losses import (
    AbstractLoss,
    CrossEntropy,
    HalfMeanSquares,
    HalfSumSquares,
    MeanSquares,
)

__all__ = [
    "AbstractLoss",
    "CrossEntropy",
    "DeadZoneHuber",
    "HalfMeanSquares",
    "HalfSumSquares",
    "Huber",
    "LogCosh",
    "Logistic",
    "LossClass",
    "MeanSquares",
    "PseudoHuber",
    "ScaledCrossEntropy",
    "loss_class",
]
