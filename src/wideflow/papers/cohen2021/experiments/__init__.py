"""Experiments of cohen2021."""
