"""Exact maps between scalings: the same network and the same training path in other words."""

from .models.maps import (
    Equivalent,
    Exponents,
    abc_network,
    as_xavier,
    common_magnitude,
    maximal_update_exponents,
    ntk_as_mean_field,
    ntk_exponents,
    older_as_mean_field,
    older_mean_field_exponents,
    ours_exponents,
    unit_magnitude,
    xavier_network,
)

__all__ = [
    "Equivalent",
    "Exponents",
    "abc_network",
    "as_xavier",
    "common_magnitude",
    "maximal_update_exponents",
    "ntk_as_mean_field",
    "ntk_exponents",
    "older_as_mean_field",
    "older_mean_field_exponents",
    "ours_exponents",
    "unit_magnitude",
    "xavier_network",
]
