r"""Activations as objects: $\sigma$ with its derivatives, its constants and its Gaussian integrals.

Convention: $\sigma'$ at a kink is `at_kink`, 0 everywhere in wideflow but in the learners of
allenzhu2018, which take 1. The convention is part of $\sigma$ itself (a `custom_jvp`), so autodiff,
kernels and models cannot disagree about it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.scipy.special import erf as _erf

from .arrays import real_array, real_values
from .errors import (
    check_between,
    check_callable,
    check_count,
    check_number,
    check_positive,
    did_you_mean,
    listing,
)
from .precision import double

__all__ = [
    "TABLE",
    "Activation",
    "absolute",
    "activation",
    "cosine",
    "custom",
    "exponential",
    "gaussian",
    "gelu",
    "hermite",
    "leaky_relu",
    "linear",
    "monomial",
    "polynomial",
    "rectified_power",
    "relu",
    "scaled_erf",
    "scaled_tanh",
    "sigmoid",
    "sign",
    "silu",
    "sine",
    "smoothed_leaky_relu",
    "softplus",
    "square",
    "two_slopes",
    "wave",
]

Function = Callable[[jax.Array], jax.Array]


def _values(z) -> jax.Array:
    """Numbers of any shape; values that are traced are inside a program, whose caller was
    checked.
    """
    return z if isinstance(z, Tracer) else real_array("z", z, finite=False, empty=True)


@dataclass(frozen=True, eq=False, repr=False)
class Activation:
    r"""$\sigma$, $\sigma'$, $\sigma''$ and what theorems ask of them.

    Attributes:
        name: what users type.
        value, slope, bend: $\sigma$, $\sigma'$, $\sigma''$ (away from kinks).
        lipschitz: the Lipschitz constant, $\sup|\sigma'|$; infinite where $\sigma$ itself jumps.
            curvature: $\sup|\sigma''|$, NaN with kinks.
        degree: $k$ if $\sigma(cz) = c^k \sigma(z)$ for $c > 0$, else None.
        interval: default bounded open interval on which $|\sigma'| \ge$ `interval_slope` $> 0$
            (chen2022, section 3) for pre-activations of unit variance.
        kinks: where $\sigma'$ jumps. odd, analytic, polynomial: flags. switch: $\sigma'$ is only 0
            or 1.
        at_kink: the value of $\sigma'$ at a kink. parameters: the numbers by which two of one name
            differ.
    """

    name: str
    value: Function
    slope: Function
    bend: Function
    lipschitz: float
    curvature: float
    degree: float | None = None
    interval: tuple[float, float] = (-1.0, 1.0)
    interval_slope: float = math.nan
    kinks: tuple[float, ...] = ()
    at_kink: float = 0.0
    odd: bool = False
    analytic: bool = True
    polynomial: bool = False
    switch: bool = False
    parameters: tuple[float, ...] = ()
    call: Function = field(init=False, repr=False)

    def __post_init__(self):
        # autodiff takes `slope` and never the derivative that JAX would choose at a kink (1/2 for a
        # maximum of equals)
        function = jax.custom_jvp(lambda z: self.value(z))

        @function.defjvp
        def _(primals, tangents):
            z = jnp.asarray(primals[0])
            return function(z), self.slope(z) * tangents[0]

        object.__setattr__(self, "call", function)

    @double
    def __call__(self, z) -> jax.Array:
        return self.call(_values(z))

    @double
    def derivative(self, z) -> jax.Array:
        return self.slope(_values(z))

    @double
    def second(self, z) -> jax.Array:
        return self.bend(_values(z))

    def __repr__(self) -> str:
        return self.name + (
            f"({', '.join(f'{p:g}' for p in self.parameters)})" if self.parameters else ""
        )

    @property
    def at_zero(self) -> float:
        return float(self.value(jnp.zeros(())))

    @property
    def key(self) -> tuple:
        """What makes two activations the same: the name, the parameters, the kink's value."""
        return (self.name, self.parameters, self.at_kink)

    def __eq__(self, other) -> bool:
        if not isinstance(other, Activation):
            return NotImplemented
        if self.name == "custom":
            return self is other or self.value is other.value
        return self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key if self.name != "custom" else self.value)

    def __reduce__(self):
        """Pickled by what it was built from: its functions are local ones, which `pickle` does not
        take.
        """
        if self.name in _BUILDERS:
            return _rebuild, self.key
        return Activation, tuple(getattr(self, part.name) for part in fields(self) if part.init)


def _step(z, at_kink=0.0):
    """1 for z > 0, 0 for z < 0, `at_kink` at 0."""
    return jnp.where(z > 0, 1.0, jnp.where(z < 0, 0.0, at_kink)).astype(z.dtype)


def _zero(z):
    return jnp.zeros_like(z)


def relu(at_kink: float = 0.0) -> Activation:
    r"""$\max(z, 0)$.

    Args:
        at_kink: $\sigma'(0)$, between 0 and 1.
    """
    check_between("at_kink", at_kink, 0.0, 1.0)
    # the usual convention sits in every hot loop: one comparison in place of two
    if at_kink == 0.0:
        slope = lambda z: (z > 0).astype(z.dtype)
    else:
        slope = lambda z: _step(z, at_kink)
    return Activation(
        "relu",
        lambda z: jnp.maximum(z, 0),
        slope,
        _zero,
        1.0,
        math.nan,
        degree=1.0,
        # the best R for chen2022's bounds at h ~ N(0, 1): it maximises slope x length x P^(3/2), P
        # the probability of the interval's middle third
        interval=(0.0, 2.71),
        interval_slope=1.0,
        kinks=(0.0,),
        at_kink=at_kink,
        analytic=False,
        switch=at_kink in (0.0, 1.0),
    )


def _check_slope(slope) -> None:
    check_number("slope", slope)
    if not 0 <= slope < 1:
        raise ValueError(f"`slope` must lie in [0, 1), got {slope}. For slope 1 use 'linear'.")


def leaky_relu(slope: float = 0.01) -> Activation:
    r"""$z^+ - \beta z^-$ with $\beta$ = `slope`.

    Args:
        slope: $\beta$, the slope below 0.
    """
    _check_slope(slope)
    return Activation(
        "leaky_relu",
        lambda z: jnp.where(z > 0, z, slope * z),
        lambda z: jnp.where(z > 0, 1.0, jnp.where(z < 0, slope, 0.0)).astype(z.dtype),
        _zero,
        1.0,
        math.nan,
        degree=1.0,
        interval=(-2.71, 2.71),
        interval_slope=slope,
        kinks=(0.0,),
        analytic=False,
        parameters=(slope,),
    )


def smoothed_leaky_relu(slope: float = 0.1, sharpness: float = 1.0) -> Activation:
    r"""$\alpha z + (1-\alpha)\log(1 + e^{\beta z})/\beta$: slope at least $\alpha$ everywhere.

    Args:
        slope: $\alpha$, the slope towards $-\infty$.
        sharpness: $\beta > 0$; the leaky ReLU is its limit $\beta \to \infty$.
    """
    check_positive("sharpness", sharpness)
    _check_slope(slope)
    a, b = slope, sharpness

    def bend(z):
        s = jax.nn.sigmoid(b * z)
        return (1 - a) * b * s * (1 - s)

    return Activation(
        "smoothed_leaky_relu",
        lambda z: a * z + (1 - a) * jax.nn.softplus(b * z) / b,
        lambda z: a + (1 - a) * jax.nn.sigmoid(b * z),
        bend,
        1.0,
        (1 - a) * b / 4,
        interval=(-2.71, 2.71),
        # sigma' rises with z: its least value is that at the left end
        interval_slope=a + (1 - a) / (1 + math.exp(2.71 * b)),
        parameters=(a, b),
    )


def absolute() -> Activation:
    return Activation(
        "abs",
        jnp.abs,
        jnp.sign,
        _zero,
        1.0,
        math.nan,
        degree=1.0,
        interval=(0.0, 2.71),
        interval_slope=1.0,
        kinks=(0.0,),
        analytic=False,
    )


def linear() -> Activation:
    return Activation(
        "linear",
        lambda z: z,
        jnp.ones_like,
        _zero,
        1.0,
        0.0,
        degree=1.0,
        interval=(-1.0, 1.0),
        interval_slope=1.0,
        odd=True,
        polynomial=True,
    )


def square() -> Activation:
    return Activation(
        "square",
        jnp.square,
        lambda z: 2 * z,
        lambda z: 2 * jnp.ones_like(z),
        math.inf,
        2.0,
        degree=2.0,
        interval=(0.5, 2.5),
        interval_slope=1.0,
        polynomial=True,
    )


def _tanh_slope(z):
    return 1 - jnp.tanh(z) ** 2


def scaled_tanh(scale: float = 1.0) -> Activation:
    r"""$\tanh(bz)/b$: slope at most 1, curvature $4b/(3\sqrt3)$, as small as one likes.

    Args:
        scale: $b > 0$.
    """
    check_positive("scale", scale)
    b = scale

    def bend(z):
        t = jnp.tanh(b * z)
        return -2 * b * t * (1 - t**2)

    return Activation(
        "tanh" if b == 1.0 else "scaled_tanh",
        lambda z: jnp.tanh(b * z) / b,
        lambda z: _tanh_slope(b * z),
        bend,
        1.0,
        # |sigma''| = 2 b |t| (1 - t^2), t = tanh(b z), is largest at t^2 = 1/3
        4 * b / (3 * math.sqrt(3)),
        # 1.37 by the same rule as ReLU's 2.71; sech^2 falls with |z|, so it is least at the ends
        interval=(-1.37 / b, 1.37 / b),
        interval_slope=1 / math.cosh(1.37) ** 2,
        odd=True,
        parameters=() if b == 1.0 else (b,),
    )


def sigmoid() -> Activation:
    def slope(z):
        s = jax.nn.sigmoid(z)
        return s * (1 - s)

    def bend(z):
        s = jax.nn.sigmoid(z)
        return s * (1 - s) * (1 - 2 * s)

    edge = 1 / (1 + math.exp(-1.5))
    return Activation(
        "sigmoid",
        jax.nn.sigmoid,
        slope,
        bend,
        0.25,
        # |sigma''| = s (1 - s) |1 - 2s| is largest at s = (1 +- 1/sqrt(3)) / 2
        1 / (6 * math.sqrt(3)),
        interval=(-1.5, 1.5),
        # sigma' = s (1 - s) falls with |z|: least at the ends
        interval_slope=edge * (1 - edge),
    )


def softplus() -> Activation:
    def bend(z):
        s = jax.nn.sigmoid(z)
        return s * (1 - s)

    return Activation(
        "softplus",
        jax.nn.softplus,
        jax.nn.sigmoid,
        bend,
        1.0,
        0.25,
        interval=(0.0, 2.71),
        interval_slope=0.5,
    )


def sine() -> Activation:
    return Activation(
        "sin",
        jnp.sin,
        jnp.cos,
        lambda z: -jnp.sin(z),
        1.0,
        1.0,
        interval=(-1.0, 1.0),
        interval_slope=math.cos(1.0),
        odd=True,
    )


def cosine() -> Activation:
    return Activation(
        "cos",
        jnp.cos,
        lambda z: -jnp.sin(z),
        lambda z: -jnp.cos(z),
        1.0,
        1.0,
        interval=(0.5, 2.5),
        interval_slope=math.sin(0.5),
    )


def exponential() -> Activation:
    return Activation(
        "exp",
        jnp.exp,
        jnp.exp,
        jnp.exp,
        math.inf,
        math.inf,
        interval=(-1.0, 1.0),
        interval_slope=math.exp(-1.0),
    )


def scaled_erf(scale: float = 1.0, *, name: str = "erf") -> Activation:
    r"""$\mathrm{erf}(bz)$; 'unit_erf' is $b = \sqrt\pi/2$, whose slope at 0 is exactly 1.

    Args:
        scale: $b > 0$.
        name: what the activation is called in tables and messages.
    """
    check_positive("scale", scale)
    b = scale
    top = 2 * b / math.sqrt(math.pi)

    def slope(z):
        return top * jnp.exp(-((b * z) ** 2))

    return Activation(
        name,
        lambda z: _erf(b * z),
        slope,
        lambda z: -2 * b**2 * z * slope(z),
        top,
        # |sigma''| = 2 b^2 |z| sigma' is largest at b |z| = 1/sqrt(2)
        top * b * math.sqrt(2) * math.exp(-0.5),
        interval=(-1 / b, 1 / b),
        interval_slope=top * math.exp(-1.0),
        odd=True,
        parameters=(b,),
    )


def gelu() -> Activation:
    r"""$z \Phi(z)$ with the exact normal distribution function."""
    density = lambda z: jnp.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    cdf = lambda z: (1 + _erf(z / math.sqrt(2))) / 2
    root2 = math.sqrt(2)  # sigma'' vanishes at sqrt(2), where sigma' is largest
    top = (1 + math.erf(1)) / 2 + root2 * math.exp(-1) / math.sqrt(2 * math.pi)
    return Activation(
        "gelu",
        lambda z: z * cdf(z),
        lambda z: cdf(z) + z * density(z),
        lambda z: (2 - z**2) * density(z),
        top,
        # |sigma''| = |2 - z^2| density is largest at 0; sigma' is at least 1/2 for z > 0, as z
        # density > 0
        2 / math.sqrt(2 * math.pi),
        interval=(0.0, 2.71),
        interval_slope=0.5,
    )


def silu() -> Activation:
    r"""$z/(1+e^{-z})$, also called swish."""

    def slope(z):
        s = jax.nn.sigmoid(z)
        return s * (1 + z * (1 - s))

    def bend(z):
        s = jax.nn.sigmoid(z)
        return s * (1 - s) * (2 + z * (1 - 2 * s))

    steepest = 2.3993572805154676  # sigma'' vanishes where z tanh(z/2) = 2
    top = 1 / (1 + math.exp(-steepest))
    return Activation(
        "silu",
        jax.nn.silu,
        slope,
        bend,
        top * (1 + steepest * (1 - top)),
        # |sigma''| is largest at 0; on z > 0 sigma' is at least its value 1/2 at 0
        0.5,
        interval=(0.0, 2.71),
        interval_slope=0.5,
    )


def polynomial(coefficients) -> Activation:
    r"""$\sum_k c_k z^k$ from its coefficients $(c_0, c_1, \dots)$.

    Args:
        coefficients: $c_0, c_1, \dots$, the constant first.

    >>> float(polynomial((1.0, 0.0, 2.0))(3.0))
    19.0
    """
    c = tuple(float(value) for value in real_values("coefficients", coefficients, "(degree)"))
    first = tuple(k * c[k] for k in range(1, len(c))) or (0.0,)
    second = tuple(k * first[k] for k in range(1, len(first))) or (0.0,)
    powers = {k for k, value in enumerate(c) if value}
    return Activation(
        "polynomial",
        _horner(c),
        _horner(first),
        _horner(second),
        # beyond degree 1 the slope, beyond degree 2 the curvature, has no bound on the line
        abs(first[0]) if max(powers, default=0) <= 1 else math.inf,
        abs(second[0]) if max(powers, default=0) <= 2 else math.inf,
        degree=float(*powers) if len(powers) == 1 else None,
        odd=all(k % 2 for k in powers),
        polynomial=True,
        parameters=c,
    )


def _horner(coefficients: tuple[float, ...]) -> Function:
    def value(z):
        total = jnp.full_like(z, coefficients[-1])
        for c in coefficients[-2::-1]:
            total = total * z + c
        return total

    return value


def powers(act: Activation) -> tuple[float, ...] | None:
    """The coefficients of a polynomial activation, the constant first; None for all others."""
    if act.name == "polynomial":
        return act.parameters
    return {"linear": (0.0, 1.0), "square": (0.0, 0.0, 1.0)}.get(act.name)


def monomial(degree: int) -> Activation:
    r"""$z^k$ with $k$ = `degree`.

    Args:
        degree: $k$.
    """
    check_count("degree", degree, least=0)
    return polynomial((0.0,) * degree + (1.0,))


def hermite(degree: int) -> Activation:
    r"""$\mathrm{He}_k(z)/\sqrt{k!}$, of unit mean square under $N(0, 1)$; $k$ = `degree`.

    Args:
        degree: $k$.

    >>> hermite(2)  # (z^2 - 1) / sqrt(2)
    polynomial(-0.707107, 0, 0.707107)
    """
    check_count("degree", degree, least=0)
    before, now = [0.0], [1.0]
    for k in range(degree):  # He_{k+1} = z He_k - k He_{k-1}
        lower = before + [0.0] * (k + 2 - len(before))
        before, now = now, [a - k * b for a, b in zip([0.0, *now], lower)]
    return polynomial([value / math.sqrt(math.factorial(degree)) for value in now])


def rectified_power(degree: int) -> Activation:
    r"""$\max(z, 0)^k$ with $k$ = `degree`; the step $1_{z > 0}$ for $k = 0$.

    Args:
        degree: $k$.
    """
    check_count("degree", degree, least=0)
    k = degree
    # the step on its own, for 0^0 = 1 would make it 1 left of the kink too
    power = lambda j: lambda z: jnp.where(z > 0, z, 0.0) ** j if j else (z > 0).astype(z.dtype)
    slope = (lambda z: k * power(k - 1)(z)) if k else _zero
    bend = (lambda z: k * (k - 1) * power(k - 2)(z)) if k > 1 else _zero
    return Activation(
        "rectified_power",
        power(k),
        slope,
        bend,
        1.0 if k == 1 else math.inf,
        math.nan if k < 2 else 2.0 if k == 2 else math.inf,
        degree=float(k),
        interval=(1.0, 2.71),
        interval_slope=float(k),
        kinks=(0.0,) if k < 2 else (),
        analytic=False,
        parameters=(float(k),),
    )


def sign() -> Activation:
    r"""$\mathrm{sign}(z)$, 0 at 0; its slope is 0 wherever it exists, so that no layer below it
    trains.
    """
    return Activation(
        "sign",
        jnp.sign,
        _zero,
        _zero,
        math.inf,
        math.nan,
        degree=0.0,
        interval_slope=0.0,
        kinks=(0.0,),
        odd=True,
        analytic=False,
    )


def gaussian(sharpness: float = 1.0) -> Activation:
    r"""$e^{-b z^2}$ with $b$ = `sharpness`.

    Args:
        sharpness: $b > 0$.
    """
    check_positive("sharpness", sharpness)
    b = float(sharpness)
    value = lambda z: jnp.exp(-b * z**2)
    low, high = 0.25 / math.sqrt(b), 1.5 / math.sqrt(b)
    return Activation(
        "gaussian",
        value,
        lambda z: -2 * b * z * value(z),
        lambda z: (4 * b**2 * z**2 - 2 * b) * value(z),
        # |sigma'| = 2 b |z| exp(-b z^2) is largest at z^2 = 1/(2b), |sigma''| at 0; |sigma'| has
        # one maximum on z > 0, so that on an interval it is least at an end
        math.sqrt(2 * b / math.e),
        2 * b,
        interval=(low, high),
        interval_slope=min(2 * b * z * math.exp(-b * z**2) for z in (low, high)),
        parameters=(b,),
    )


def wave(amplitude: float = 1.0, frequency: float = 1.0, phase: float = 0.0) -> Activation:
    r"""$a\sin(bz + c)$ with $a$ = `amplitude`, $b$ = `frequency`, $c$ = `phase`.

    Args:
        amplitude: $a$.
        frequency: $b$, an angle a unit of $z$.
        phase: $c$.
    """
    for name, number in {"amplitude": amplitude, "frequency": frequency, "phase": phase}.items():
        check_number(name, number)
    a, b, c = float(amplitude), float(frequency), float(phase)
    return Activation(
        "wave",
        lambda z: a * jnp.sin(b * z + c),
        lambda z: a * b * jnp.cos(b * z + c),
        lambda z: -a * b**2 * jnp.sin(b * z + c),
        abs(a * b),
        abs(a) * b**2,
        parameters=(a, b, c),
    )


def two_slopes(negative: float, positive: float = 1.0) -> Activation:
    r"""$a \min(z, 0) + b \max(z, 0)$ with $a$ = `negative` and $b$ = `positive`, of any sign and
    size.

    Args:
        negative: $a$, the slope below 0.
        positive: $b$, the slope above.
    """
    check_number("negative", negative)
    check_number("positive", positive)
    a, b = float(negative), float(positive)
    slope = lambda z: jnp.where(z > 0, b, jnp.where(z < 0, a, 0.0)).astype(z.dtype)
    return Activation(
        "two_slopes",
        lambda z: jnp.where(z > 0, b * z, a * z),
        slope,
        _zero,
        max(abs(a), abs(b)),
        math.nan,
        degree=1.0,
        interval=(0.0, 2.71),
        interval_slope=abs(b),
        kinks=(0.0,),
        analytic=False,
        parameters=(a, b),
    )


def custom(
    function: Function, *, lipschitz: float = math.nan, curvature: float = math.nan
) -> Activation:
    r"""Any elementwise JAX function; derivatives by autodiff, unknown constants are NaN.

    Args:
        function: $\sigma$, from one number to one number, twice differentiable by JAX.
        lipschitz: $\sup|\sigma'|$; theorems that need it do not apply where it is NaN.
        curvature: $\sup|\sigma''|$, likewise.
    """
    _check_elementwise(function)
    for name, constant in (("lipschitz", lipschitz), ("curvature", curvature)):
        if not (isinstance(constant, int | float) and not constant < 0):
            raise ValueError(f"`{name}` must not be negative (NaN: unknown), got {constant!r}.")
    slope = _elementwise(jax.grad(function))
    bend = _elementwise(jax.grad(jax.grad(function)))
    return Activation("custom", function, slope, bend, lipschitz, curvature)


def _check_elementwise(function) -> None:
    """Traces the function once on a small matrix: what is not elementwise shows by its shape."""
    check_callable("activation", function, "a name, an `Activation` or an elementwise function")
    # two axes of different lengths: a transpose or a sum over an axis shows in the shape
    probe = jax.ShapeDtypeStruct((2, 3), jnp.result_type(float))
    try:
        values = jax.eval_shape(function, probe)
        shape = getattr(values, "shape", None)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"`activation` must be an elementwise function written with `jax.numpy`, but it raises "
            f"{type(error).__name__}: {error}"
        ) from error
    if shape != probe.shape:
        raise ValueError(
            f"`activation` must be elementwise, but it maps shape {probe.shape} to {shape}."
        )
    if not jnp.issubdtype(values.dtype, jnp.floating):
        raise ValueError(f"`activation` must give real numbers, but it gives {values.dtype}.")


def _elementwise(scalar: Function) -> Function:
    return lambda z: jnp.vectorize(scalar)(z)


TABLE: dict[str, Callable[[], Activation]] = {
    "relu": relu,
    "leaky_relu": leaky_relu,
    "smoothed_leaky_relu": smoothed_leaky_relu,
    "abs": absolute,
    "linear": linear,
    "square": square,
    "tanh": scaled_tanh,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "sin": sine,
    "cos": cosine,
    "exp": exponential,
    "erf": scaled_erf,
    "unit_erf": lambda: scaled_erf(math.sqrt(math.pi) / 2, name="unit_erf"),
    "gelu": gelu,
    "silu": silu,
    "gaussian": gaussian,
}


_BUILDERS: dict[str, Callable[..., Activation]] = TABLE | {
    "unit_erf": lambda _: TABLE["unit_erf"](),
    "polynomial": lambda *c: polynomial(c),
    "rectified_power": lambda degree: rectified_power(int(degree)),
    "scaled_tanh": scaled_tanh,
    "sign": sign,
    "wave": wave,
    "two_slopes": two_slopes,
}


def _rebuild(name: str, parameters: tuple[float, ...], at_kink: float) -> Activation:
    """The activation of that `key`."""
    return relu(at_kink) if name == "relu" else _BUILDERS[name](*parameters)


ActivationLike = str | Activation | Function
"""What `activation` takes."""


def activation(given: ActivationLike) -> Activation:
    """An `Activation` from its name, from itself, or from any elementwise JAX function.

    Args:
        given: a name of the table (`"relu"`, `"tanh"`, ...), an `Activation`, which is returned as
            it is, or a function.

    >>> activation("tanh").curvature
    0.769800358919501
    """
    if isinstance(given, Activation):
        return given
    if isinstance(given, str):
        if given not in TABLE:
            raise ValueError(
                f"`activation` must be {listing(TABLE)}, an `Activation` or a function, "
                f"got {given!r}.{did_you_mean(given, TABLE)}"
            )
        return TABLE[given]()
    if callable(given):
        return custom(given)
    raise ValueError(f"`activation` must be a name, an `Activation` or a function, got {given!r}.")
