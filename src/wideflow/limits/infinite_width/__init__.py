"""Infinitely wide networks from their description: covariances carried through the layers, tiles,
predictions.
"""
