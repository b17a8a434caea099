"""Dynamics: how models move."""

from .best_iterate import BestIterate as BestIterate
from .clipped import ClippedFlow as ClippedFlow
from .descent import GradientDescent as GradientDescent
from .flow import GradientFlow as GradientFlow
from .schedule import Logarithmic as Logarithmic
from .sgd import SGD as SGD
from .smoothed_sgd import SmoothedSGD as SmoothedSGD
from .smoothing_noise import DrawnNoise as DrawnNoise, ReplayedNoise as ReplayedNoise
from .train import Run as Run, train as train
from .truncated import LossBelow as LossBelow, TruncatedDescent as TruncatedDescent
