r"""Weights that represent a three-layer concept on two random layers (allenzhu2018, Lemma 5.6,
corrected; practical route).

For a term $a^\star\Phi(\psi(x))\,\chi(x)$ with
$\psi = \sum_jv^\star_{1,j}\phi_{1,j}(\langle w^\star_{1,j},x\rangle)$,
$\chi = \sum_jv^\star_{2,j}\phi_{2,j}(\langle w^\star_{2,j},x\rangle)$:

1. find $q \in \mathbb R^{m_1}$, a function of the first layer alone, with
   $\langle q, \mathrm{relu}(W_0x + b_1)\rangle \approx \psi(x)$ (`ridge_carrier` or
   `explicit_carrier`). Then $\rho_i = \langle v_i, q\rangle/\lVert q\rVert$ and the rest of the
   second-layer neuron $i$ are exactly independent Gaussians given $W_0$;
2. $H_i = h_{\Phi'}(\sqrt{m_2}\langle v_i, q\rangle/\lVert q\rVert, \sqrt{m_2}b_{2,i})$ with
   $\Phi'(z) = \Phi(\lVert q\rVert z)$, from Lemma 5.1;
3. $K_{i'} = \sum_jv^\star_{2,j}h_{\phi_{2,j}}(\sqrt{m_1}\langle w^\star_{2,j}, w_{i'}\rangle,
   \sqrt{m_1}b_{1,i'})$;
4. with random signs $v \in \{\pm1\}^{m_1}$, one vector a term, and a free scale $c$:
   $V^\star_{i,:} = \frac{1}{cm_2}\sum_ra_{r,i}a^\star_rH_iv^\top$,
   $\quad W^\star_{i',:} = \frac{2c}{\varepsilon_a^2m_1}v_{i'}K_{i'}e_d^\top$,

and $g^{(0)}(x) = \sum_ia_iD_v(x)_i\langle V^\star_i, D_w(x)W^\star x\rangle \to f^\star(x)$ at rate
$m^{-1/2}$. For the form (9) $2e_d$ becomes $w^\star_{4,j}$ inside the $j$-sum.

Corrected: the factor 2 (for $x_d = 1/2$) is missing in (235), arguments of $h$ lack $\sqrt{m_1}$ or
$\sqrt{m_2}$. The paper's own route to step 1 (chunks of Lemma 5.2, about $m_1^{1/3}$ of them) gives
$\Gamma = 10C\sqrt{p_2} \approx 300$ in the place of $\lVert q\rVert \approx 2$ and errors a hundred
times larger.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....._core.arrays import real_values
from ....._core.errors import check_count, check_kind, check_nonnegative, check_positive
from ...laws.concepts import ThreeLayerConcept
from .hermite_functions import Numbers, hermite_function

__all__ = [
    "ThreeLayerWeights",
    "explicit_carrier",
    "first_function",
    "ridge_carrier",
    "three_layer_representation",
    "three_layer_weights",
]


def _check_term(concept, term) -> None:
    check_kind("concept", concept, ThreeLayerConcept, "a `ThreeLayerConcept`")
    check_count("term", term, least=0, most=concept.first_mix.shape[0] - 1)


def _layer(concept, first, bias, name: str = "bias") -> tuple[np.ndarray, np.ndarray]:
    d = concept.first_weights.shape[1]
    first = np.asarray(real_values("first", first, f"(width, {d})"), float)
    return first, np.asarray(real_values(name, bias, f"({len(first)},)"), float)


def explicit_carrier(
    first: Numbers, bias: Numbers, concept: ThreeLayerConcept, term: int = 0, **options
) -> np.ndarray:
    r"""$q_i = \frac1{\sqrt{m_1}}\sum_jv^\star_{1,j}h^{\mathrm{relu}}_{\phi_{1,j}}(\sqrt{m_1}\langle
    w^\star_{1,j},w_i\rangle, \sqrt{m_1}b_i)$, the closed form.

    It needs unit inputs and no data; the form (9) with `first_linear` has no such formula, use
    `ridge_carrier`.

    Args:
        first: $W_0$, whose rows are the $w_i$, shape (m1, d).
        bias: $b_1$, shape (m1,).
        concept: where $v^\star_1$, $w^\star_1$ and $\phi_1$ come from.
        term: which term of the concept's outer sum.
        options: go to `hermite_function`.
    """
    _check_term(concept, term)
    if concept.first_linear is not None:
        raise ValueError("`concept` must have no `first_linear`, got one. Use `ridge_carrier`.")
    first, bias = _layer(concept, first, bias)
    root, atom = math.sqrt(first.shape[0]), bias == 0
    mix, weights = (
        np.asarray(concept.first_mix[term], float),
        np.asarray(concept.first_weights, float),
    )
    total = sum(
        mix[j]
        * hermite_function(phi, gate="relu", **options)(
            root * first @ weights[j], root * bias, atom
        )
        for j, phi in enumerate(concept.first_activations)
        if mix[j] != 0
    )
    return np.asarray(total) / root


def ridge_carrier(
    first: Numbers,
    bias: Numbers,
    concept: ThreeLayerConcept,
    term: int,
    inputs: Numbers,
    ridge: float | int = 1e-3,
) -> np.ndarray:
    r"""$q = U^\top(UU^\top + \text{ridge}\,I)^{-1}\psi$ with rows
    $U_j = \mathrm{relu}(W_0x_j + b_1)$ on a few hundred sample `inputs`.

    Args:
        first: $W_0$, shape (m1, d).
        bias: $b_1$, shape (m1,).
        concept: whose first factor $\psi$ is fitted, see `first_function`.
        term: which term of its outer sum.
        ridge: added to the diagonal of $UU^\top$.
    """
    target = first_function(concept, term, inputs)
    first, bias = _layer(concept, first, bias)
    check_nonnegative("ridge", ridge)
    features = np.maximum(np.asarray(inputs, float) @ first.T + bias, 0)
    gram = features @ features.T
    return features.T @ np.linalg.solve(gram + ridge * np.eye(len(gram)), target)


def first_function(concept: ThreeLayerConcept, term: int, inputs: Numbers) -> np.ndarray:
    r"""$\psi(x) = \sum_jv^\star_{1,j}\phi_{1,j}(\langle w^\star_{1,j},x\rangle)$ (times
    $\langle w_{3,j},x\rangle$ in the form (9)) of one term.

    Args:
        concept: a `ThreeLayerConcept`.
        term: which term of its outer sum.
        inputs: $x$, shape (sample, d).
    """
    _check_term(concept, term)
    d = concept.first_weights.shape[1]
    inputs = np.asarray(real_values("inputs", inputs, f"(sample, {d})"), float)
    z = inputs @ np.asarray(concept.first_weights, float).T
    values = np.stack(
        [np.asarray(phi(z[:, j])) for j, phi in enumerate(concept.first_activations)], axis=-1
    )
    if concept.first_linear is not None:
        values = values * (inputs @ np.asarray(concept.first_linear, float).T)
    return values @ np.asarray(concept.first_mix[term], float)


@dataclass(frozen=True)
class ThreeLayerWeights:
    r"""`first` is $W^\star$ (m1, d), `second` $V^\star$ (m2, m1); `first_coefficients` $K$ (terms,
    m1), `second_coefficients` $H$ (terms, m2), `signs` (terms, m1).

    Attributes:
        carrier_norms: $\lVert q\rVert$ of each term.
    """

    first: np.ndarray
    second: np.ndarray
    first_coefficients: np.ndarray
    second_coefficients: np.ndarray
    signs: np.ndarray
    carrier_norms: np.ndarray


def three_layer_weights(
    first: Numbers,
    first_bias: Numbers,
    second: Numbers,
    second_bias: Numbers,
    output: Numbers,
    concept: ThreeLayerConcept,
    *,
    output_std: float | int,
    signs: Numbers,
    carriers: Sequence[Numbers] | None = None,
    scale: float | int = 1.0,
    **options,
) -> ThreeLayerWeights:
    r"""$W^\star, V^\star$ of Lemma 5.6 for the initial weights `first` $W_0$ (m1, d), `second`
    $V_0$ (m2, m1), `output` $a$ (outputs, m2) or (m2,).

    Args:
        signs: $v \in \{\pm1\}$, (terms, m1): independent for each term of the concept, so that
            cross terms are $O(m_1^{-1/2})$.
        carriers: $q$ for each term; by default `explicit_carrier`.
        scale: $c$. Divides $V^\star$, multiplies $W^\star$; near
            $(\varepsilon_a^3\sqrt{2m_1}/K)^{1/2}$ the two cross variances of Lemma 5.3 balance
            ($K$ = rms of `first_coefficients`).
        options: go to `hermite_function`.
        first_bias, second_bias: $b_1$ (m1,) and $b_2$ (m2,).
        concept: what is to be represented, of as many outputs as `output`.
        output_std: $\varepsilon_a$, the deviation of $a$.
    """
    _check_term(concept, 0)
    check_positive("output_std", output_std)
    check_positive("scale", scale)
    first, first_bias = _layer(concept, first, first_bias, "first_bias")
    second = np.asarray(real_values("second", second, f"(width, {len(first)})"), float)
    m1, m2 = len(first), len(second)
    second_bias = np.asarray(real_values("second_bias", second_bias, f"({m2},)"), float)
    shapes = f"({m2},)", f"(output, {m2})"
    output = np.atleast_2d(np.asarray(real_values("output", output, *shapes), float))
    truth = np.atleast_2d(np.asarray(concept.output, float))
    signs = np.atleast_2d(np.asarray(real_values("signs", signs), float))
    terms = truth.shape[1]
    if signs.shape != (terms, m1):
        raise ValueError(
            f"`signs` must have shape ({terms}, {m1}), one row per term, got {signs.shape}."
        )
    if output.shape[0] != truth.shape[0]:
        raise ValueError(
            f"`output` must have {truth.shape[0]} rows, one for each output of `concept`, got "
            f"{output.shape[0]}."
        )
    if carriers is None:
        carriers = [
            explicit_carrier(first, first_bias, concept, i, **options) for i in range(terms)
        ]
    root1, root2 = math.sqrt(m1), math.sqrt(m2)
    atom1, atom2 = first_bias == 0, second_bias == 0
    weights, mix = np.asarray(concept.second_weights, float), np.asarray(concept.second_mix, float)
    inner = np.stack(
        [
            hermite_function(phi, **options)(root1 * first @ weights[j], root1 * first_bias, atom1)
            for j, phi in enumerate(concept.second_activations)
        ]
    )
    last = np.zeros(first.shape[1])
    last[-1] = 2.0  # compensates x_d = 1/2
    linear = (
        np.tile(last, (len(weights), 1))
        if concept.second_linear is None
        else np.asarray(concept.second_linear, float)
    )
    carriers = [
        np.asarray(real_values("carriers", carrier, f"({m1},)"), float) for carrier in carriers
    ]
    if len(carriers) != terms:
        raise ValueError(
            f"`carriers` must hold one carrier for each of the {terms} terms, got {len(carriers)}."
        )
    norms, outer, first_star, second_star = [], [], np.zeros_like(first), np.zeros_like(second)
    for i, carrier in enumerate(carriers):
        norms.append(float(np.linalg.norm(carrier)))
        function = hermite_function(concept.outer[i].scaled(norms[-1]), **options)
        outer.append(function(root2 * second @ carrier / norms[-1], root2 * second_bias, atom2))
        second_star += np.outer(output.T @ truth[:, i] * outer[-1], signs[i]) / (scale * m2)
        first_star += (
            scale
            / (output_std**2 * m1)
            * signs[i][:, None]
            * ((mix[i][:, None] * inner).T @ linear)
        )
    return ThreeLayerWeights(
        first_star, second_star, mix @ inner, np.stack(outer), signs, np.array(norms)
    )


def three_layer_representation(
    first: Numbers,
    first_bias: Numbers,
    second: Numbers,
    second_bias: Numbers,
    output: Numbers,
    weights: ThreeLayerWeights,
    inputs: Numbers,
) -> np.ndarray:
    r"""$g^{(0)}(x) = a\,D_v(x)V^\star D_w(x)W^\star x$ with the signs of the initial network:
    (sample, outputs), or (sample,) for a flat `output`.

    Args:
        first: $W_0$, shape (m1, d).
        first_bias: $b_1$, shape (m1,).
        second: $V_0$, shape (m2, m1).
        second_bias: $b_2$, shape (m2,).
        output: $a$, shape (outputs, m2) or (m2,).
        weights: $W^\star$ and $V^\star$, from `three_layer_weights`.
        inputs: $x$, shape (sample, d).
    """
    check_kind("weights", weights, ThreeLayerWeights, "what `three_layer_weights` returns")
    m1, d = weights.first.shape
    m2 = weights.second.shape[0]
    wanted = {
        "first": (first, f"({m1}, {d})"),
        "first_bias": (first_bias, f"({m1},)"),
        "second": (second, f"({m2}, {m1})"),
        "second_bias": (second_bias, f"({m2},)"),
        "inputs": (inputs, f"(sample, {d})"),
    }
    first, first_bias, second, second_bias, inputs = (
        np.asarray(real_values(name, value, shape), float)
        for name, (value, shape) in wanted.items()
    )
    output = np.asarray(real_values("output", output, f"({m2},)", f"(output, {m2})"), float)
    z = inputs @ first.T + first_bias
    q = np.maximum(z, 0) @ second.T + second_bias
    moved = ((z >= 0) * (inputs @ weights.first.T)) @ weights.second.T
    return ((q >= 0) * moved) @ output.T
