"""Experiments of luo2021."""
