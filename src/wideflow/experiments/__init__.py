"""Experiments: what one declares, and the registry of all of them."""

from .base import Claim, Experiment

__all__ = ["Claim", "Experiment"]
