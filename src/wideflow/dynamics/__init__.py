"""Dynamics: how models move."""

from .descent import GradientDescent as GradientDescent
from .flow import GradientFlow as GradientFlow
from .schedule import Logarithmic as Logarithmic
from .sgd import SGD as SGD
from .train import Run as Run, train as train
