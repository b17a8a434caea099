"""Losses, each with its factors stated; outputs and targets are (sample,) or (sample, output)."""

from .dynamics.losses import (
    AbstractLoss,
    CrossEntropy,
    DeadZoneHuber,
    HalfMeanSquares,
    HalfSumSquares,
    Huber,
    LogCosh,
    Logistic,
    LossClass,
    MeanSquares,
    PseudoHuber,
    ScaledCrossEntropy,
    loss_class,
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
