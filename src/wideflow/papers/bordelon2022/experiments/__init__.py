"""Experiments of bordelon2022."""
