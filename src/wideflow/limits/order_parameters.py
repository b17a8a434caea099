r"""Online learning in high dimension: the closed equations of the overlaps (saad1995; goldt2019;
veiga2022).

A student $f(x) = s\sum_ka_k\sigma(\lambda_k)$ sees each sample of a teacher
$y = \sum_ra^*_r\sigma^*(\rho_r) + \sqrt\Delta\,\xi$ once, $x \sim N(0, I_d)$, with
$\lambda_k = \langle w_k, x\rangle/\sqrt d$, $\rho_r = \langle w^*_r, x\rangle/\sqrt d$. The
overlaps $Q = WW^\top/d$, $M = WW^{*\top}/d$, $P = W^*W^{*\top}/d$ are the covariance of
$(\lambda, \rho)$. The step
$w_k \mathrel{-}= \frac\eta{\sqrt d}\,s\,a_k\sigma'(\lambda_k)\,(f - y)\,x$ moves them, in the time
$\tau$ = steps$/d$ and as $d\to\infty$, by
$$\dot M_{kr} = -\eta s a_k E[\sigma'(\lambda_k)\rho_re], \qquad \dot a_k = -\eta_a s
  E[\sigma(\lambda_k)e],$$
$$\dot Q_{kl} = -\eta s\big(a_kE[\sigma'(\lambda_k)\lambda_le] +
  a_lE[\sigma'(\lambda_l)\lambda_ke]\big)
  + \tfrac{\eta^2}B s^2a_ka_lE[\sigma'(\lambda_k)\sigma'(\lambda_l)(e^2 + \Delta)],$$
$e = f - E[y|x]$, $B$ the samples of a step. Without the last term this is the flow of the
population loss $\frac12Ee^2$, and then the equations hold at every finite $d$:
$\dot w = -\eta\,d\,\nabla_w\frac12Ee^2$ in the same time.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._core.activations import Activation, ActivationLike, activation as as_activation
from .._core.arrays import real_array, square_matrix
from .._core.errors import (
    check_between,
    check_count,
    check_flag,
    check_kind,
    check_nonnegative,
    check_number,
    check_of_indices,
    check_positive,
    check_takes,
)
from .._core.precision import AbstractResult, DoubleModule, double
from .._core.ridge_pairs import NODES, check_ridge, parts
from .ridge_quads import (
    gaussian_points,
    mean_square,
    noise_matrix,
    psd_root,
    unit_pairs,
)

BLOWUP = 1e8  # a length squared this many times above its start is divergence


class Overlaps(AbstractResult):
    r"""Where a student stands: $M$ (width, index), $Q$ (width, width), $P$ (index, index), $a$
    (width).

    Args:
        M: $WW^{*\top}/d$, student with teacher.
        Q: $WW^\top/d$, student with student.
        P: $W^*W^{*\top}/d$, teacher with teacher.
        output: $a$, the second layer.

    >>> Overlaps(M=[[0.1]], Q=[[1.0]], P=[[1.0]], output=[1.0]).M.shape
    (1, 1)
    """

    M: Float[Array, "width index"]
    Q: Float[Array, "width width"]
    P: Float[Array, "index index"]
    output: Float[Array, " width"]

    @double
    def __init__(self, M, Q, P, output):
        self.M = real_array("M", M, "(width, index)").astype(float)
        self.Q = square_matrix("Q", Q).astype(float)
        self.P = square_matrix("P", P).astype(float)
        self.output = real_array("output", output, "(width,)").astype(float)
        width, indices = self.M.shape
        for name, array, length in (
            ("Q", self.Q, width),
            ("P", self.P, indices),
            ("output", self.output, width),
        ):
            if len(array) != length:
                raise ValueError(
                    f"`{name}` must have length {length} to fit `M` of shape {self.M.shape}, got "
                    f"{len(array)}."
                )
        _check_covariance(self.covariance)

    @classmethod
    @double
    def of_weights(cls, hidden, directions, output) -> "Overlaps":
        r"""At a finite $d$: $\lambda = Hx$ and $\rho = Vx$ give $Q = HH^\top$, $M = HV^\top$,
        $P = VV^\top$.

        Args:
            hidden: $H$, one row a neuron, with its factor: $w_k/\sqrt d$
                (`net.hidden_scale * net.hidden`).
            directions: $V$, one row an index.
            output: $a$, shape (width,).
        """
        h = real_array("hidden", hidden, "(width, feature)").astype(float)
        v = real_array("directions", directions, "(index, feature)").astype(float)
        if h.shape[1] != v.shape[1]:
            raise ValueError(
                f"`directions` must have the {h.shape[1]} columns of `hidden`, got {v.shape[1]}."
            )
        return cls(h @ v.T, h @ h.T, v @ v.T, output)

    @property
    def covariance(self) -> Float[Array, "unit unit"]:
        r"""Of $(\lambda, \rho)$: $((Q, M), (M^\top, P))$."""
        return _covariance(self.M, self.Q, self.P)


class OnlineEquations(DoubleModule):
    r"""The right-hand sides.

    Args:
        activation: $\sigma$ of the student: closed forms for erf, ReLU and its kin, polynomials
            (`square`, `activations.hermite(k)`), whichever of them the teacher is; quadrature for
            other smooth ones.
        teacher: $\sigma^*$, likewise, or `activations.sign()`; or a function $g$ of the vector
            $\rho$, written with `jax.numpy`, by quadrature over all indices together (at most four
            of student and teacher; $a^*$ is then not used).
        coefficients: $a^*$; ones by default.
        rate: $\eta$. output_rate: $\eta_a$, 0 for a frozen second layer.
        scale: $s$. noise: $\Delta$. decay: $\gamma$ of $w \mathrel{-}= \frac{\eta\gamma}dw$.
        batch: $B$, fixed as $d$ grows.
        spherical: after each step every neuron is set back to its length.
        online: False leaves out the $\eta^2$ term: the flow of the population loss.
        order: nodes a dimension where quadrature in four is needed; fewer dimensions take more of
            them.

    >>> equations = OnlineEquations("erf", "erf", rate=0.5)
    >>> start = Overlaps(M=[[1.0]], Q=[[1.0]], P=[[1.0]], output=[1.0])
    >>> float(equations.error(start))  # the teacher itself
    0.0
    """

    activation: Activation = eqx.field(static=True)
    teacher: Activation | Callable[[Array], Array] = eqx.field(static=True)
    coefficients: Float[Array, " index"] | None
    rate: Float[Array, ""]
    output_rate: Float[Array, ""]
    scale: Float[Array, ""]
    noise: Float[Array, ""]
    decay: Float[Array, ""]
    batch: int = eqx.field(static=True)
    spherical: bool = eqx.field(static=True)
    online: bool = eqx.field(static=True)
    order: int = eqx.field(static=True)

    @double
    def __init__(
        self,
        activation: ActivationLike = "erf",
        teacher: ActivationLike = "erf",
        coefficients=None,
        *,
        rate: float = 1.0,
        output_rate: float = 0.0,
        scale: float = 1.0,
        noise: float = 0.0,
        decay: float = 0.0,
        batch: int = 1,
        spherical: bool = False,
        online: bool = True,
        order: int = 48,
    ):
        self.activation = as_activation(activation)
        if self.activation.name == "sign":
            raise ValueError("`activation` must have a slope, got 'sign': its student never moves.")
        check_ridge("activation", self.activation)
        if callable(teacher) and not isinstance(teacher, Activation):
            check_takes("teacher", teacher, ("indices",))
            self.teacher = teacher
        else:
            self.teacher = as_activation(teacher)
            check_ridge("teacher", self.teacher)
        self.coefficients = _coefficients(coefficients)
        check_positive("rate", rate)
        check_nonnegative("output_rate", output_rate)
        check_number("scale", scale)
        check_nonnegative("noise", noise, "It is the variance of the labels' noise.")
        check_nonnegative("decay", decay)
        check_count("batch", batch)
        check_flag("spherical", spherical)
        check_flag("online", online)
        check_count("order", order, least=2, most=64)
        as_number = lambda number: jnp.asarray(float(number))
        self.rate, self.output_rate, self.scale = map(as_number, (rate, output_rate, scale))
        self.noise, self.decay = map(as_number, (noise, decay))
        self.batch, self.spherical, self.online, self.order = batch, spherical, online, order
        if isinstance(self.teacher, Activation):
            _check_pair(self.activation, self.teacher)

    @property
    def general(self) -> bool:
        """Whether the teacher is a function of all indices together."""
        return not isinstance(self.teacher, Activation)

    @property
    def _unit(self) -> Activation:
        """The teacher's activation, where it is a sum of one over the indices."""
        assert isinstance(self.teacher, Activation), "a teacher of all indices together has none"
        return self.teacher

    @double
    def error(self, overlaps: Overlaps) -> Float[Array, ""]:
        r"""The generalisation error $\frac12Ee^2$, without the labels' noise."""
        self._check(overlaps)
        return self._error(overlaps.M, overlaps.Q, overlaps.P, overlaps.output)

    @double
    def field(self, overlaps: Overlaps) -> tuple[Array, Array, Array]:
        r"""$(\dot M, \dot Q, \dot a)$."""
        self._check(overlaps)
        return self._field(overlaps.M, overlaps.Q, overlaps.P, overlaps.output)

    def _check(self, overlaps) -> None:
        check_kind("overlaps", overlaps, Overlaps, "`limits.Overlaps`")
        width, indices = overlaps.M.shape
        if self.coefficients is not None and len(self.coefficients) != indices:
            raise ValueError(
                f"`coefficients` must have one number per index ({indices}), got "
                f"{len(self.coefficients)}."
            )
        if self.general:
            check_of_indices("teacher", self.teacher, indices)
        if self.general and width + indices > 4:
            raise ValueError(
                f"`teacher` is a function of {indices} indices; with {width} neurons that makes "
                f"{width + indices} "
                "dimensions of quadrature, at most 4 are possible. Write it as a sum of one "
                "activation over indices."
            )
        if self.spherical and not bool(np.all(np.diag(np.asarray(overlaps.Q)) > 0)):
            raise ValueError("`overlaps` must have no neuron of length zero for spherical SGD.")

    def _error(self, M, Q, P, a):
        if self.general:
            _, _, e, weights = self._nodes(M, Q, P, a, self.order)
            return 0.5 * (weights @ e**2)
        width, c = len(a), self._signed(a, len(P))
        rows, target = unit_pairs(self.activation, self._unit, _covariance(M, Q, P), width)
        # a difference of numbers of order one: rounding can go below 0
        return jnp.maximum(0.5 * mean_square(rows, target, c, width), 0.0)

    def _field(self, M, Q, P, a, finer: float = 1.0):
        """The right-hand sides, with `finer` times as many nodes as usual."""
        terms = self._by_nodes if self.general else self._by_pairs
        drift, response, noise = terms(M, Q, P, a, finer)
        width, eta = len(a), self.rate
        # decay moves w by -eta gamma w/d a step, hence M by -eta gamma M and Q, with two neurons,
        # by twice that
        dM = -eta * (drift[:, width:] + self.decay * M)
        dQ = -eta * (drift[:, :width] + drift[:, :width].T + 2 * self.decay * Q)
        if self.online:
            dQ = dQ + eta**2 / self.batch * noise
        da = -self.output_rate * self.scale * response
        if self.spherical:
            dM, dQ = self.on_sphere(M, Q, dM, dQ)
        return dM, dQ, da

    def on_sphere(self, M, Q, dM, dQ):
        """Moves of the overlaps with the radial part of every neuron's taken back, to first order
        in 1/d.
        """
        # a neuron's length moves by dQ_kk/2 relative to Q_kk: taken back from every overlap it has
        # part in
        radial = 0.5 * jnp.diagonal(dQ) / jnp.diagonal(Q)
        return dM - radial[:, None] * M, dQ - (radial[:, None] + radial) * Q

    def sampled_residual(self, M, Q, P, a, z):
        r"""$(\lambda, \rho)$ and $e$ at standard normal vectors `z`, (point, unit)."""
        width = len(a)
        h = z @ psd_root(_covariance(M, Q, P)).T
        outputs = self.activation.value(h[:, :width]) @ (self.scale * a)
        if self.general:
            return h, outputs - jax.vmap(self.teacher)(h[:, width:])
        star = self._signed(a, len(P))[width:]
        return h, outputs + self._unit.value(h[:, width:]) @ star

    def _by_pairs(self, M, Q, P, a, finer):
        r"""$(c_kE[\sigma'(\lambda_k)h_ze],\ E[\sigma(\lambda_k)e],\ c_kc_lE[\sigma'\sigma'(e^2+\Delta)])$
        with $z$ over all units.
        """
        width, c, cov = len(a), self._signed(a, len(P)), _covariance(M, Q, P)
        nodes, order = (math.ceil(finer * count) for count in (NODES, self.order))
        rows, _ = unit_pairs(self.activation, self._unit, cov, width, nodes)
        own = c[:width]
        # Stein: E[sigma'(l_k) z e] = Cov(z, l_k) sum_j c_j E[sigma'' phi_j] + sum_j c_j E[sigma'
        # phi_j'] Cov(z, h_j)
        drift = (rows.first @ c)[:, None] * cov[:width] + (rows.mixed * c) @ cov
        noise = jnp.zeros_like(Q)
        if self.online:
            noise = noise_matrix(self.activation, self._unit, cov, c, width, order)
            # E[sigma' sigma' Delta] = Delta E[sigma' sigma'], for the labels' noise is independent
            noise = jnp.outer(own, own) * (noise + self.noise * rows.mixed[:, :width])
        return own[:, None] * drift, rows.value @ c, noise

    def _by_nodes(self, M, Q, P, a, finer):
        width, own = len(a), self.scale * a
        h, slope, e, weights = self._nodes(M, Q, P, a, math.ceil(finer * self.order))
        pull = slope * own
        drift = (pull * (weights * e)[:, None]).T @ h
        response = (weights * e) @ self.activation.value(h[:, :width])
        noise = (pull * (weights * (e**2 + self.noise))[:, None]).T @ pull
        return drift, response, noise

    def _nodes(self, M, Q, P, a, order):
        h, weights = gaussian_points(self.activation, _covariance(M, Q, P), order)
        width = len(a)
        outputs = self.activation.value(h[:, :width]) @ (self.scale * a)
        targets = jax.vmap(self.teacher)(h[:, width:])
        return h, self.activation.slope(h[:, :width]), outputs - targets, weights

    def _signed(self, a, indices: int):
        """The coefficients of e: s a of the student, minus a* of the teacher."""
        star = jnp.ones(indices) if self.coefficients is None else self.coefficients
        return jnp.concatenate([self.scale * a, -star])


class OrderParameterPath(AbstractResult):
    r"""A solution: the overlaps and the generalisation error at `times` ($\tau$), and anywhere
    between by `at`.

    Attributes:
        M, Q: shapes (time, width, index) and (time, width, width).
        output: $a$, shape (time, width).
        error: the generalisation error, shape (time,).
        P: the teacher's own overlaps, constant in time.
        interpolation: the solver's, between its steps.
        status: 'done', 'diverged' or 'max_steps'.
    """

    times: Float[Array, " time"]
    M: Float[Array, "time width index"]
    Q: Float[Array, "time width width"]
    output: Float[Array, "time width"]
    error: Float[Array, " time"]
    P: Float[Array, "index index"]
    interpolation: Any  # Diffrax's, over all times
    status: str = eqx.field(static=True)

    def at(self, time: float) -> Overlaps:
        r"""The overlaps at any $\tau$ up to the last of `times`, by the solver's own
        interpolation.
        """
        check_between("time", time, 0.0, float(self.times[-1]))
        M, Q, a = self.interpolation.evaluate(jnp.asarray(float(time)))
        return Overlaps(M, (Q + Q.T) / 2, self.P, a)


@double
def order_parameters(
    equations: OnlineEquations,
    start: Overlaps,
    times,
    *,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_steps: int = 16_384,
) -> OrderParameterPath:
    r"""Solves the equations from `start`; the cost does not depend on $d$.

    Args:
        times: $\tau$ = steps$/d$, rising, from 0 on.
        rtol, atol: of Diffrax's Tsit5 with its step controller.
        equations: the right-hand sides.
        start: the overlaps at $\tau = 0$.
        max_steps: of the solver.

    Returns:
        The path. Its `status` is 'done', 'diverged' where a rate beyond the stable ones lets $Q$
            grow without bound, or 'max_steps';
        what lies beyond the end of a path that is not done is NaN.
    """
    from .._core.solvers import diffrax

    ts = checked_problem(equations, start, times)
    check_positive("rtol", rtol)
    check_positive("atol", atol)
    check_count("max_steps", max_steps)
    solution, errors = _solve(equations, start, ts, rtol, atol, max_steps)
    assert solution.ys is not None  # `saveat` asks for them
    assert solution.interpolation is not None  # and for this
    M, Q, a = (jnp.where(jnp.isfinite(y), y, jnp.nan) for y in solution.ys)
    status = "max_steps"
    if bool(solution.result == diffrax.RESULTS.successful):
        status = "done"
    elif bool(solution.result == diffrax.RESULTS.event_occurred):
        status = "diverged"
    return OrderParameterPath(ts, M, Q, a, errors, start.P, solution.interpolation, status)


def checked_problem(equations, start, times) -> Float[Array, " time"]:
    """The times as an array, where equations, start and times fit."""
    check_kind("equations", equations, OnlineEquations, "`limits.OnlineEquations`, built")
    equations._check(start)
    ts = real_array("times", times, "(time,)").astype(float)
    host = np.asarray(ts)
    if host[0] < 0 or not np.all(np.diff(host) > 0):
        raise ValueError("`times` must rise from 0 or later, each one larger than the one before.")
    return ts


@eqx.filter_jit
def _solve(equations, start, ts, rtol, atol, max_steps):
    from .._core.solvers import diffrax

    def field(t, y, args):
        M, Q, a = y
        return equations._field(M, Q, start.P, a)

    def blown(t, y, args, **kwargs):
        return jnp.max(jnp.abs(y[1])) > BLOWUP * (1 + jnp.max(jnp.abs(start.Q)))

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        0.0,
        ts[-1],
        None,
        (start.M, start.Q, start.output),
        saveat=diffrax.SaveAt(ts=ts, dense=True),
        max_steps=max_steps,
        throw=False,
        # beyond it the step size would fall to nothing while Q runs away
        event=diffrax.Event(blown),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
    )
    errors = jax.lax.map(lambda y: equations._error(y[0], y[1], start.P, y[2]), solution.ys)
    return solution, errors


@double
def order_parameter_error(equations: OnlineEquations, overlaps: Overlaps) -> float:
    r"""How far quadrature is off: the largest difference of the right-hand sides at `order` and at
    a quarter more nodes a dimension.

    Zero where all is in closed form; the finer rule is the judge, so the error of smooth integrands
    is stated to a small factor. Pairs of smooth activations take 128 nodes a dimension whatever
    `order` is, and are judged likewise. With kinks inside a general teacher the error falls only
    like a power of `order`, and this number shows it.

    Args:
        equations: the right-hand sides, with their `order`.
        overlaps: the state at which they are compared.
    """
    check_kind("equations", equations, OnlineEquations, "`limits.OnlineEquations`, built")
    equations._check(overlaps)
    if not equations.general and _closed(equations.activation, equations._unit):
        return 0.0
    state = (overlaps.M, overlaps.Q, overlaps.P, overlaps.output)
    fields = [equations._field(*state, finer) for finer in (1.0, 1.25)]
    gaps = [float(jnp.max(jnp.abs(p - q))) for p, q in zip(*fields, strict=True)]
    return max(gaps)


def _closed(student: Activation, teacher: Activation) -> bool:
    """Whether no quadrature enters the equations of a teacher that is one activation."""
    return parts(student) is not None and parts(teacher) is not None


def _check_pair(student: Activation, teacher: Activation) -> None:
    """Refuses a kink beside an activation without closed forms: quadrature would not converge."""
    if _closed(student, teacher):
        return
    for act in (student, teacher):
        if act.kinks:
            raise ValueError(
                f"`teacher` {teacher.name!r} and `activation` {student.name!r} have no closed "
                f"form together, and the kink of {act.name!r} spoils "
                "quadrature. Take a smooth activation in its place, or erf, ReLU, polynomials "
                "and signs for both."
            )


def _covariance(M, Q, P):
    return jnp.block([[Q, M], [M.T, P]])


def _check_covariance(covariance) -> None:
    if isinstance(covariance, Tracer):
        return
    values = np.linalg.eigvalsh(np.asarray(covariance))
    # 1e-10: far above the rounding of an eigenvalue, 1e-16 of the largest
    if values[0] < -1e-10 * max(values[-1], 1e-300):
        raise ValueError(
            "`M`, `Q` and `P` must be the overlaps of vectors, but their covariance has the "
            "negative eigenvalue "
            f"{values[0]:.3g}. Take them from weights with `Overlaps.of_weights`."
        )


def _coefficients(values):
    if values is None:
        return None
    star = real_array("coefficients", values, "(index,)").astype(float)
    if not isinstance(star, Tracer) and bool(jnp.any(star == 0)):
        raise ValueError(
            "`coefficients` must not be zero; leave out the index that the teacher does not use."
        )
    return star
