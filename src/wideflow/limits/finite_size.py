r"""Online learning at a finite dimension: the fluctuations of the overlaps around their equations,
of order $d^{-1/2}$.

One step moves the overlaps by $\frac1dD$, with
$g_k = s\,a_k\sigma'(\lambda_k)(e - \sqrt\Delta\,\xi)$ and
$$D_{M_{kr}} = -\eta\,g_k\rho_r, \qquad D_{Q_{kl}} = -\eta\,(g_k\lambda_l + g_l\lambda_k) +
  \tfrac{\eta^2}Bg_kg_l, \qquad
  D_{a_k} = -\eta_as\,\sigma(\lambda_k)(e - \sqrt\Delta\,\xi),$$
for one sample $(\lambda, \rho, \xi)$. Steps are independent and a unit of time has $d$ of them, so
that the overlaps $y = (M, Q, a)$ follow
$$dy = F(y)\,d\tau + d^{-1/2}\,C(y)^{1/2}\,dB, \qquad C = \tfrac1B\mathrm{Cov}(D),$$
where $F = E\,D$ are the equations of `order_parameters` (decay and the sphere's projection
included). What is left out is of order $1/d$: the fluctuations of $|x|^2/d$ and of products of
different samples. Around a path $\bar y$ of the equations, small fluctuations are Gaussian with
covariance $\Sigma/d$,
$$\dot\Sigma = J\Sigma + \Sigma J^\top + C(\bar y), \qquad J = \partial F/\partial y, \qquad
  \Sigma(0) = 0.$$
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core.errors import as_key, check_count, check_positive
from .._core.precision import AbstractResult, double
from .._core.randomness import named_key
from .._core.sobol import sobol_normals
from .._core.types import Key
from .order_parameters import OnlineEquations, Overlaps, checked_problem

__all__ = [
    "OrderParameterBand",
    "StochasticPaths",
    "order_parameter_band",
    "stochastic_order_parameters",
]

# of the sequence behind C: a per cent of a band, as Sobol's points err by about 1/POINTS
POINTS = 4096
SHIFT = 1e-5  # central differences: 1e-10 of truncation and 1e-11 of rounding


class OrderParameterBand(AbstractResult):
    r"""A path of the equations with the standard deviations that dimension $d$ leaves around it, at
    `times`.

    `error_std` is of first order in the fluctuations: it vanishes where the error is stationary.

    Attributes:
        times: $\tau$ = steps$/d$.
        M, Q, output, error: the path of the equations: overlaps with the teacher and among
            students, second layer, generalisation error.
        M_std, Q_std, output_std, error_std: their standard deviations at that dimension.
    """

    times: Float[Array, " time"]
    M: Float[Array, "time width index"]
    Q: Float[Array, "time width width"]
    output: Float[Array, "time width"]
    error: Float[Array, " time"]
    M_std: Float[Array, "time width index"]
    Q_std: Float[Array, "time width width"]
    output_std: Float[Array, "time width"]
    error_std: Float[Array, " time"]


class StochasticPaths(AbstractResult):
    r"""Samples of the stochastic equations.

    Attributes:
        times: $\tau$ = steps$/d$.
        M, Q, output, error: overlaps with the teacher and among students, second layer and
            generalisation error, one path a row.
    """

    times: Float[Array, " time"]
    M: Float[Array, "path time width index"]
    Q: Float[Array, "path time width width"]
    output: Float[Array, "path time width"]
    error: Float[Array, "path time"]

    def band(self, share: float = 0.95) -> tuple[Array, Array]:
        """Between which errors that share of the paths lies, at every time."""
        check_positive("share", share)
        tail = (1 - float(share)) / 2
        low, high = jnp.quantile(self.error, jnp.array([tail, 1 - tail]), axis=0)
        return low, high


@double
def order_parameter_band(
    equations: OnlineEquations, start: Overlaps, times, features: int, *, rtol: float = 1e-6
) -> OrderParameterBand:
    r"""The path of the equations with the band of dimension $d$ = `features`, by the linear
    equation for $\Sigma$.

    Good while fluctuations are small beside the scale on which the equations bend; where a start
    sits on a saddle take `stochastic_order_parameters`.

    Args:
        equations: of `order_parameters`, with rates, noise and batch.
        start: the overlaps at time zero, known exactly.
        times: $\tau$ = steps$/d$, rising, from 0 on.
        rtol: of the solver.

    >>> start = Overlaps(M=[[0.2]], Q=[[1.0]], P=[[1.0]], output=[1.0])
    >>> equations = OnlineEquations("erf", "erf", rate=0.5)
    >>> band = order_parameter_band(equations, start, [1.0], features=400)
    >>> bool(0 < band.M_std[0, 0, 0] < 2 / 400**0.5)
    True
    """
    ts = checked_problem(equations, start, times)
    check_count("features", features)
    check_positive("rtol", rtol)
    paths, deviations, errors, error_std = _band(equations, start, ts, rtol)
    M, Q, a = paths
    scale = 1 / math.sqrt(features)
    M_std, Q_std, a_std = (scale * deviation for deviation in deviations)
    return OrderParameterBand(ts, M, Q, a, errors, M_std, Q_std, a_std, scale * error_std)


@double
def stochastic_order_parameters(
    key: int | Key,
    equations: OnlineEquations,
    start: Overlaps,
    times,
    features: int,
    *,
    paths: int = 64,
    step: float = 0.02,
) -> StochasticPaths:
    r"""Independent samples of $dy = F\,d\tau + d^{-1/2}C^{1/2}dB$ from one start, by Euler and
    Maruyama.

    Args:
        equations: of `order_parameters`, with rates, noise and batch.
        start: the overlaps from which every path begins.
        times: $\tau$ = steps$/d$, rising, from 0 on.
        features: $d$.
        paths: how many samples.
        step: of the solver, in $\tau$; weak errors are of first order in it.
    """
    ts = checked_problem(equations, start, times)
    check_count("features", features)
    check_count("paths", paths)
    check_positive("step", step)
    keys = jax.random.split(named_key(as_key(key), "fluctuations"), paths)
    (M, Q, a), errors = _samples(equations, start, ts, float(features), float(step), keys)
    return StochasticPaths(ts, M, Q, a, errors)


def _flat(M, Q, a):
    """The independent numbers of a state: M, the upper triangle of Q, a."""
    # Q is symmetric: with both of Q_kl and Q_lk the covariance would be singular for no reason
    rows, columns = np.triu_indices(len(a))
    return jnp.concatenate([M.ravel(), Q[rows, columns], a])


def _state(y, width: int, indices: int):
    rows, columns = np.triu_indices(width)
    count = width * indices
    upper = jnp.zeros((width, width)).at[rows, columns].set(y[count : count + len(rows)])
    return y[:count].reshape(width, indices), jnp.triu(upper) + jnp.triu(upper, 1).T, y[-width:]


def _sources(dimensions: int) -> np.ndarray:
    """Points of a scrambled Sobol sequence as standard normal vectors, whitened exactly."""
    z = sobol_normals(POINTS, dimensions, 0)
    # mean 0 and covariance I exactly: what is linear or bilinear in the sources has no error at all
    z -= z.mean(axis=0)
    return np.linalg.solve(np.linalg.cholesky(z.T @ z / POINTS), z.T).T


def _diffusion(equations: OnlineEquations, P, y, width: int):
    r"""$C(y)$ over the independent numbers of a state."""
    indices = len(P)
    M, Q, a = _state(y, width, indices)
    z = jnp.asarray(_sources(width + indices + 1))
    h, e = equations.sampled_residual(M, Q, P, a, z[:, :-1])
    e = e - jnp.sqrt(equations.noise) * z[:, -1]
    own, eta, batch = h[:, :width], equations.rate, equations.batch
    g = equations.scale * a * equations.activation.slope(own) * e[:, None]
    outer = lambda left, right: left[:, :, None] * right[:, None, :]
    dM = -eta * outer(g, h[:, width:])
    dQ = -eta * (outer(g, own) + outer(own, g))
    if equations.online:
        dQ = dQ + eta**2 / batch * outer(g, g)
    da = -equations.output_rate * equations.scale * equations.activation.value(own) * e[:, None]
    if equations.spherical:
        dM, dQ = jax.vmap(lambda m, q: equations.on_sphere(M, Q, m, q))(dM, dQ)
    moves = jax.vmap(_flat)(dM, dQ, da)
    # Cov(D) over the same points as its mean, so that it is positive semi-definite
    moves = moves - jnp.mean(moves, axis=0)
    return moves.T @ moves / (len(z) * batch)


def _functions(equations: OnlineEquations, P, width: int):
    """Drift, diffusion and error of a flat state."""
    state = lambda y: _state(y, width, len(P))

    def drift(y):
        M, Q, a = state(y)
        return _flat(*equations._field(M, Q, P, a))

    def error(y):
        M, Q, a = state(y)
        return equations._error(M, Q, P, a)

    return drift, lambda y: _diffusion(equations, P, y, width), error


def _slopes(function, y):
    """Derivatives by central differences, one row a number of `y`: closed forms with roots have
    none where units coincide.
    """
    shifts = SHIFT * jnp.eye(len(y))
    ahead, behind = (jax.lax.map(function, y + sign * shifts) for sign in (1.0, -1.0))
    return (ahead - behind) / (2 * SHIFT)


@eqx.filter_jit
def _band(equations, start, ts, rtol):
    from .._core.solvers import diffrax

    width = len(start.output)
    drift, diffusion, error = _functions(equations, start.P, width)

    def field(t, state, args):
        y, sigma = state
        # rows of `_slopes` are the numbers of y: its transpose is J
        turned = _slopes(drift, y).T @ sigma
        return drift(y), turned + turned.T + diffusion(y)

    y0 = _flat(start.M, start.Q, start.output)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        0.0,
        ts[-1],
        None,
        (y0, jnp.zeros((len(y0),) * 2)),
        saveat=diffrax.SaveAt(ts=ts),
        throw=False,
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
    )

    def read(state):
        y, sigma = state
        slope = _slopes(error, y)
        deviation = jnp.sqrt(jnp.maximum(jnp.diagonal(sigma), 0.0))
        shapes = lambda flat: _state(flat, width, len(start.P))
        spread = jnp.sqrt(jnp.maximum(slope @ sigma @ slope, 0.0))
        return shapes(y), shapes(deviation), error(y), spread

    return jax.lax.map(read, solution.ys)


@eqx.filter_jit
def _samples(equations, start, ts, features, step, keys):
    from .._core.solvers import diffrax

    width = len(start.output)
    drift, diffusion, error = _functions(equations, start.P, width)

    def root(t, y, args):
        values, vectors = jnp.linalg.eigh(diffusion(y))
        return vectors * jnp.sqrt(jnp.maximum(values, 0.0) / features)

    y0 = _flat(start.M, start.Q, start.output)

    def one(key):
        # resolved finer than the steps, so that each step sees its own increment
        noise = diffrax.VirtualBrownianTree(0.0, ts[-1], step / 4, y0.shape, key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, args: drift(y)), diffrax.ControlTerm(root, noise)
        )
        ys = diffrax.diffeqsolve(
            terms,
            diffrax.Euler(),
            0.0,
            ts[-1],
            step,
            y0,
            saveat=diffrax.SaveAt(ts=ts),
            throw=False,
            max_steps=None,
        ).ys
        states = jax.vmap(lambda y: _state(y, width, len(start.P)))(ys)
        return states, jax.lax.map(error, ys)

    return jax.lax.map(one, keys, batch_size=16)
