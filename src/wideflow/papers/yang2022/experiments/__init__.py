"""Experiments of yang2022."""
