r"""Weights that represent a two-layer concept on a random first layer (allenzhu2018, Lemma G.1,
corrected).

$$\tilde w_j = \frac{1}{\varepsilon_a^2m}\sum_r a_{r,j}\sum_i a^\star_{r,i}\,h^{(i)}\big(\sqrt
  m\langle w_j, w^\star_{1,i}\rangle, \sqrt m\,b_j\big)\,w^\star_{2,i},$$
so that $\sum_j a_{r,j}\langle\tilde w_j, x\rangle\mathbf 1[\langle w_j, x\rangle + b_j \ge 0] \to
f^\star_r(x)$ at rate $m^{-1/2}$. Corrected: (415) lacks $a^\star$ and $1/m$.
"""

import math

import numpy as np

from ....._core.arrays import real_values
from ....._core.errors import check_kind, check_positive
from ...laws.concepts import TwoLayerConcept
from .hermite_functions import Numbers, hermite_function

__all__ = ["two_layer_representation", "two_layer_weights"]


def two_layer_weights(
    first: Numbers,
    bias: Numbers,
    output: Numbers,
    concept: TwoLayerConcept,
    *,
    output_std: float | int,
    **options,
) -> np.ndarray:
    r"""$\tilde W$ (m, d) of Lemma G.1 for the initial weights `first` (m, d), `bias` (m,), `output`
    (outputs, m) or (m,).

    `output_std` is $\varepsilon_a$; `options` go to `hermite_function` (window, margin, degree,
    error, clip).

    Args:
        concept: what is to be represented, of as many outputs as `output`.
    """
    check_kind("concept", concept, TwoLayerConcept, "a `TwoLayerConcept`")
    check_positive("output_std", output_std)
    first = np.asarray(real_values("first", first, f"(width, {concept.inner.shape[1]})"), float)
    bias = np.asarray(real_values("bias", bias, f"({len(first)},)"), float)
    shapes = f"({len(first)},)", f"(output, {len(first)})"
    output = np.atleast_2d(np.asarray(real_values("output", output, *shapes), float))
    truth = np.atleast_2d(np.asarray(concept.output, float))
    if output.shape[0] != truth.shape[0]:
        raise ValueError(
            f"`output` must have {truth.shape[0]} rows, one for each output of `concept`, got "
            f"{output.shape[0]}."
        )
    root, atom = math.sqrt(first.shape[0]), bias == 0
    inner, linear = np.asarray(concept.inner, float), np.asarray(concept.linear, float)
    coefficients = np.stack(
        [
            hermite_function(phi, **options)(root * first @ inner[i], root * bias, atom)
            for i, phi in enumerate(concept.activations)
        ]
    )
    return ((output.T @ truth) * coefficients.T) @ linear / (output_std**2 * first.shape[0])


def two_layer_representation(
    first: Numbers, bias: Numbers, output: Numbers, weights: Numbers, inputs: Numbers
) -> np.ndarray:
    r"""$\sum_ja_{r,j}\langle\tilde w_j,x\rangle\mathbf 1[\langle w_j,x\rangle+b_j\ge0]$ on inputs
    (sample, d): (sample, outputs), or (sample,) for a flat `output`.

    Args:
        first: $w_j$, shape (m, d).
        bias: $b_j$, shape (m,).
        output: $a$, shape (outputs, m) or (m,).
        weights: $\tilde W$ of `two_layer_weights`, shape (m, d).
        inputs: $x$, shape (sample, d).
    """
    first = np.asarray(real_values("first", first, "(width, feature)"), float)
    m, d = first.shape
    bias = np.asarray(real_values("bias", bias, f"({m},)"), float)
    output = np.asarray(real_values("output", output, f"({m},)", f"(output, {m})"), float)
    weights = np.asarray(real_values("weights", weights, f"({m}, {d})"), float)
    inputs = np.asarray(real_values("inputs", inputs, f"(sample, {d})"), float)
    active = inputs @ first.T + bias >= 0
    return (active * (inputs @ weights.T)) @ output.T
