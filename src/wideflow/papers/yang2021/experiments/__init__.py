"""Experiments of yang2021."""
