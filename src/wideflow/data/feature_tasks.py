r"""Tasks on which features matter: the quadratic teacher and the four axis types of chen2022
(Experiments 2 and 3).
"""

import jax
import jax.numpy as jnp

from .._core.errors import check_count, check_kind
from .._core.memory import check_fits
from .._core.precision import double
from .._core.randomness import named_key, normal, signs
from .._core.types import Key
from .dataset import Dataset

__all__ = ["axis_types", "quadratic_teacher"]


@double
def quadratic_teacher(
    key: Key, samples: int, features: int = 30, teacher_width: int = 5, part: str = "train"
) -> Dataset:
    r"""Gaussian inputs with $y = \frac1k \sum_{i \le k} c_i\, \mathrm{relu}(x^\top V_i x / d)$,
    $V_i$ of standard normal entries, $c_i = \pm 1$ (chen2022, Experiment 2).

    The teacher is a network of width $k$ on the quadratic embedding. It depends on `key` alone;
    `part` names the draw of the inputs, so that training and test data of one key share their
    teacher.

    Args:
        samples: $n$.
        features: $d$.
        teacher_width: $k$.
        part: the name of the draw of the inputs, such as "train" or "test".
    """
    check_count("samples", samples)
    check_count("features", features)
    check_count("teacher_width", teacher_width)
    check_kind("part", part, str, "a name, as text")
    check_fits(samples=samples, features=features)
    check_fits(teacher_width=teacher_width, features=features**2)
    weights = normal(named_key(key, "teacher", "hidden"), (teacher_width, features, features))
    output = signs(named_key(key, "teacher", "output"), (teacher_width,))
    x = normal(named_key(key, part, "inputs"), (samples, features))
    h = jnp.einsum("ni,kij,nj->nk", x, weights, x) / features
    return Dataset(
        x,
        jnp.maximum(h, 0) @ output / teacher_width,
        f"quadratic teacher (n={samples}, d={features})",
    )


AXIS_TYPES = ((1.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (0.0, 1.0, -1.0), (0.0, -1.0, -1.0))


@double
def axis_types(key: Key, samples: int, features: int = 50) -> Dataset:
    r"""$(x_1, x_2, y)$ uniform on $(1, 0, 1), (-1, 0, 1), (0, 1, -1), (0, -1, -1)$; all other
    coordinates uniform on $[-1, 1]$ (chen2022, equations 93-96).

    The label is $x_1^2 - x_2^2$: no linear function sees it, and $d - 2$ coordinates are noise.

    Args:
        samples: $n$.
        features: $d \ge 2$.
    """
    check_count("samples", samples)
    check_count("features", features, least=2)
    check_fits(samples=samples, features=features)
    types = jax.random.randint(named_key(key, "types"), (samples,), 0, 4)
    rows = jnp.asarray(AXIS_TYPES)[types]
    rest = jax.random.uniform(
        named_key(key, "inputs"), (samples, features - 2), minval=-1.0, maxval=1.0
    )
    return Dataset(
        jnp.concatenate([rows[:, :2], rest], axis=1),
        rows[:, 2],
        f"axis types (n={samples}, d={features})",
    )
