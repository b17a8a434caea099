"""Experiments of chizat2019."""
