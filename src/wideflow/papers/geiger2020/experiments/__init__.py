"""Experiments of geiger2020."""
