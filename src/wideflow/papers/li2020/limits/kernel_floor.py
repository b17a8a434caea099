r"""What no kernel can learn: hard families of targets and their floor (li2020, Theorem 1.2, App. C,
made quantitative).

Blocks: a partition of $[d]$ into $r$-sets, $r$ a power of two; on each block the target has the $r$
columns of the normalised Sylvester-Hadamard matrix, placed on the coordinates the block lists
(corrected: Definition C.1 places them on consecutive coordinates, which does not depend on the
partition at all). The part of $f^*$ that is odd in every coordinate of a block and even elsewhere
has energy $\frac1rC_r(\sum_{q}\chi_qa_q)^2$, and these parts are orthogonal between targets that
share no block. So for any space of $N$ functions fixed in advance (features, or $K(\cdot, x_i)$
given the $x_i$) and a family of $H$ targets, by Bessel,
$$\frac1H\sum_{targets}\ \min_{f\in V}\mathbb E(f^*-f)^2 \ \ge\ \Big(1 - \frac NH\Big)\frac{C_r}d
  \qquad (a = 1/d,\ r \ge 4).$$
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import hadamard

from ...._core.arc_cosine import abs_hermite_squares
from ...._core.arrays import index_list, real_values
from ...._core.errors import check_count
from ...._core.precision import double

__all__ = [
    "block_directions",
    "block_energy",
    "block_signs",
    "degree_floor",
    "feature_loss",
    "floor_constant",
    "fourier_coefficient",
    "hard_family",
    "kernel_floor",
    "largest_size",
    "union_bound_size",
]

Blocks = Sequence[Sequence[int]]


def _check_block(size: int, least: int = 2) -> None:
    check_count("block", size, least=least)
    if size & (size - 1):
        raise ValueError(
            f"`block` must be a power of two (a Sylvester-Hadamard order), got {size}."
        )


def block_directions(blocks: Blocks, features: int | None = None) -> np.ndarray:
    r"""The orthonormal target directions of a partition: row $pr+q$ is column $q$ of the Hadamard
    matrix on block $p$.

    Args:
        blocks: sets of $r$ coordinates each, $r$ a power of two, that partition
            $\{0, \dots, d-1\}$.
        features: $d$; as many as the blocks hold if None.

    >>> (2**0.5 * block_directions([[0, 2], [1, 3]])).round().astype(int).tolist()
    [[1, 0, 1, 0], [1, 0, -1, 0], [0, 1, 0, 1], [0, 1, 0, -1]]
    """
    try:
        lists = [list(block) for block in blocks]
    except TypeError as error:
        raise ValueError(f"`blocks` must be lists of coordinates, got {blocks!r}.") from error
    size = len(lists[0]) if lists else 0
    _check_block(size, least=1)
    flat = [i for block in lists for i in block]
    d = len(flat) if features is None else features
    check_count("features", d)
    for coordinate in flat:
        check_count("blocks", coordinate, least=0)
    if any(len(block) != size for block in lists) or sorted(flat) != list(range(d)):
        raise ValueError(f"`blocks` must partition range({d}) into sets of one size, got {lists}.")
    columns = hadamard(size).T / math.sqrt(size)
    rows = np.zeros((d, d))
    for p, block in enumerate(lists):
        rows[p * size : (p + 1) * size, block] = columns
    return rows


def block_signs(block: int) -> np.ndarray:
    r"""$\chi_q$: the product of the signs of Hadamard column $q$; all $+1$ for $r \ge 4$, $(1, -1)$
    for $r = 2$.

    Args:
        block: $r$, a power of two.
    """
    _check_block(block, least=1)
    return np.prod(hadamard(block), axis=0).astype(float)


def floor_constant(block: int) -> float:
    r"""$C_r = \frac r{2^r}\sum_{s=0}^r(-1)^s\binom rsK(1 - 2s/r)$, with $K$ the pair expectation of
    absolute values.

    It is $\mathbb E_x\psi(x)^2$ for $\psi(x) = \mathbb E_\tau|\sum x_i\tau_i|\prod\tau_i$ (the
    paper's $\lambda_\mu$). The sum alternates and is taken in extended precision (relative error
    about 1e-13 at $r = 16$ where the machine has 80 bits, 3e-10 where it has 64); beyond $r = 16$
    it is below $10^{-9}$ and not offered.

    Args:
        block: $r$, a power of two up to 16.

    >>> [round(floor_constant(r), 8) for r in (2, 4, 8)]
    [0.36338023, 0.01893853, 0.00042673]
    """
    _check_block(block)
    if block > 16:
        raise ValueError(
            f"`block` must be at most 16, got {block}: the constant is below 1e-9 and lost in "
            "rounding."
        )
    s = np.arange(block + 1)
    rho = 1 - np.longdouble(2) * s / block
    pairs = (np.sqrt(1 - rho**2) + rho * np.arcsin(rho)) / np.arcsin(np.longdouble(1))
    weights = np.array([(-1) ** k * math.comb(block, k) for k in s], dtype=np.longdouble)
    return float(block * np.sum(weights * pairs) / np.longdouble(2) ** block)


@double
def block_energy(coefficients, block: int) -> np.ndarray:
    r"""$\frac1rC_r(\sum_{q\in p}\chi_qa_q)^2$ for every block $p$ of consecutive coefficients:
    $\mathbb E_x\lambda_B(x)^2$.

    For $a = 1/d$ and $r \ge 4$ they sum to $C_r/d$; for $r = 2$ the signs $\chi$ cancel and they
    vanish.

    Args:
        coefficients: $a$, block after block.
        block: $r$.
    """
    _check_block(block)
    a = np.asarray(real_values("coefficients", coefficients, "(direction)"), dtype=float)
    if a.size % block:
        raise ValueError(
            f"`coefficients` must be a vector of whole blocks of {block}, got shape {a.shape}."
        )
    return floor_constant(block) / block * (a.reshape(-1, block) @ block_signs(block)) ** 2


@double
def fourier_coefficient(inputs, subset: Sequence[int], coefficients, directions) -> np.ndarray:
    r"""$\lambda_B(\bar x) = \mathbb E_\tau[f^*(\tau\circ\bar x)\prod_{i\in B}\tau_i]$, $\tau$
    uniform on $\{\pm1\}^d$, at every input.

    All $2^d$ signs are summed, so $d \le 16$. It vanishes on every $r$-set that is not a block.

    Args:
        inputs: $\bar x$, shape (sample, d).
        subset: $B$, a list of coordinates.
        coefficients: $a$ of the target $f^*$.
        directions: its orthonormal directions, one row a coefficient.
    """
    x = np.atleast_2d(np.asarray(real_values("inputs", inputs), dtype=float))
    d = x.shape[1]
    v = np.asarray(real_values("directions", directions, f"(direction, {d})"), dtype=float)
    a = np.asarray(real_values("coefficients", coefficients, f"({len(v)},)"), dtype=float)
    if d > 16:
        raise ValueError(
            f"`inputs` must have at most 16 features, got {d}: all 2^d signs are summed."
        )
    bits = np.arange(2**d)[:, None] >> np.arange(d) & 1
    tau = 1.0 - 2.0 * bits
    character = np.prod(tau[:, index_list("subset", subset, d, what="coordinates")], axis=1)
    return np.array([character @ (np.abs((tau * row) @ v.T) @ a) for row in x]) / 2**d


def union_bound_size(features: int, block: int) -> int:
    r"""The largest $H$ with $H^2(d/r)^2(r/d)^r < 1$ (Lemma C.1): $\lceil(d/r)^{(r-2)/2}\rceil - 1$.

    Args:
        features: $d$.
        block: $r$, a divisor of $d$.

    >>> union_bound_size(32, 4)
    7
    """
    _check_split(features, block)
    ratio = features // block
    power = ratio ** (block - 2)  # H < sqrt(power)
    root = math.isqrt(power)
    return root - 1 if root * root == power else root


def largest_size(features: int, block: int) -> int:
    r"""$\binom{d-1}{r-1}$: the most partitions that share no block (Baranyai).

    Args:
        features: $d$.
        block: $r$, a divisor of $d$.

    >>> largest_size(32, 4)
    4495
    """
    _check_split(features, block)
    return math.comb(features - 1, block - 1)


def _check_split(features: int, block: int) -> None:
    check_count("features", features)
    check_count("block", block)
    if features % block:
        raise ValueError(f"`block` must divide `features` = {features}, got {block}.")


def hard_family(
    features: int, block: int, size: int | None = None, seed: int = 0
) -> list[tuple[tuple[int, ...], ...]]:
    """`size` partitions of the coordinates into blocks, no two sharing a block.

    For two blocks ($d = 2r$) all $\\binom{d-1}{r-1}$ splits are listed, and `size` defaults to all;
    otherwise partitions are drawn at random and those that repeat a block are thrown away (the
    proof of Lemma C.1).

    Args:
        features: $d$.
        block: $r$, the size of a block.
        size: how many partitions.
        seed: of the random search.

    >>> len(hard_family(8, 4))
    35
    """
    _check_split(features, block)
    check_count("seed", seed, least=0)
    if size is not None:
        check_count("size", size)
    if features == 2 * block:
        halves = (
            frozenset((0, *rest)) for rest in itertools.combinations(range(1, features), block - 1)
        )
        family = [(tuple(sorted(h)), tuple(sorted(set(range(features)) - h))) for h in halves]
        size = len(family) if size is None else size
    else:
        if size is None:
            raise ValueError("`size` must be given unless the partitions have two blocks.")
        family = _random_family(features, block, size, np.random.default_rng(seed))
    if len(family) < size:
        raise ValueError(
            f"`size` must be at most {len(family)} here, got {size}: at most "
            f"{largest_size(features, block)} partitions "
            "share no block, and a random search found fewer."
        )
    return family[:size]


def _random_family(features, block, size, rng) -> list[tuple[tuple[int, ...], ...]]:
    family, used = [], set()
    for _ in range(200 * size):
        if len(family) == size:
            break
        order = rng.permutation(features).reshape(-1, block)
        blocks = tuple(tuple(sorted(int(i) for i in row)) for row in order)
        if used.isdisjoint(blocks):
            used.update(blocks)
            family.append(blocks)
    return family


def kernel_floor(features: int, block: int, functions: int, family: int | None = None) -> float:
    r"""$(1 - N/H)^+C_r/d$: the mean best loss over $H$ targets that $N$ functions fixed in advance
    cannot beat.

    Args:
        functions: $N$: features of a map, or samples of a kernel method.
        family: $H$; default the largest, $\binom{d-1}{r-1}$.
        features: $d$.
        block: $r$, a power of two between 4 and 16.

    >>> round(kernel_floor(32, 4, 1000), 7)
    0.0004602
    """
    check_count("functions", functions, least=0)
    check_count("block", block, least=4, remedy="For 2 the blocks' energies cancel at a = 1/d.")
    size = largest_size(features, block) if family is None else family
    check_count("family", size)
    return max(0.0, 1 - functions / size) * floor_constant(block) / features


@double
def degree_floor(coefficients, degree: int) -> float:
    r"""$R_{>p} = \sum a^2\sum_{k>p}c_k$: the best fit of degree $p$ to any orthonormal target with
    coefficients $a$.

    Rotation-invariant kernels with $d^p \ll n \ll d^{p+2}$ samples sit near it (asymptotically, not
    as a strict bound).

    Args:
        coefficients: $a$.
        degree: $p$.

    >>> [round(degree_floor([1.0], p), 7) for p in (2, 4, 6)]
    [0.0450703, 0.0185445, 0.0105868]
    """
    check_count("degree", degree, least=0)
    a = np.asarray(real_values("coefficients", coefficients), dtype=float)
    return float(np.sum(a**2) * (1 - abs_hermite_squares(degree).sum()))


@double
def feature_loss(units, coefficients, directions=None) -> float:
    r"""The exact best population loss with the features $|\langle u_j, x\rangle|$:
    $\mathbb Ef^{*2} - b^\top G^+b$.

    $G = K(UU^\top)$ and $b = K(UW^{*\top})a$; no test samples. `units` are unit rows (they are
    normalised).

    Args:
        units: the $u_j$, shape (unit, feature).
        coefficients: $a$, one a direction.
        directions: the rows $w^*_k$ of $W^*$; the basis if None.
    """
    u = np.asarray(real_values("units", units, "(unit, feature)", empty=True), dtype=float)
    a = np.asarray(real_values("coefficients", coefficients, "(direction)"), dtype=float)
    v = np.eye(a.size, u.shape[1])
    if directions is not None:
        shape = f"({a.size}, {u.shape[1]})"
        v = np.asarray(real_values("directions", directions, shape), dtype=float)
    norms = np.linalg.norm(u, axis=1)
    if not np.all(norms > 0):
        raise ValueError(
            f"`units` must be nonzero rows, got zero in row {int(np.argmin(norms))}: drop it."
        )
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    second = (1 - 2 / math.pi) * np.sum(a**2) + 2 / math.pi * np.sum(a) ** 2
    if len(u) == 0:
        return float(second)
    b = _abs_pair(u @ v.T) @ a
    return float(second - b @ np.linalg.lstsq(_abs_pair(u @ u.T), b, rcond=1e-12)[0])


def _abs_pair(rho):
    rho = np.clip(rho, -1.0, 1.0)
    return 2 / math.pi * (np.sqrt(1 - rho**2) + rho * np.arcsin(rho))
