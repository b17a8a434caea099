"""Reduced flow against tabulated trajectories, brute-force quadrature, conserved quantities and
step orders.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.special import gamma, jv

from wideflow.papers.ren2023.laws.arcsine import ArcsineLaw
from wideflow.papers.ren2023.laws.bessel import BesselLaw
from wideflow.papers.ren2023.laws.regular import FixedRadius, GaussianRadius, UniformRadius
from wideflow.papers.ren2023.laws.step_bound import step_bound
from wideflow.papers.ren2023.laws.thresholds import Thresholds
from wideflow.papers.ren2023.limits.field import ReducedState, reduced_field, reduced_loss
from wideflow.papers.ren2023.limits.flow import alpha_of_norm, reduced_flow
from wideflow.papers.ren2023.limits.stages import reduced_stages, time_to_loss

LAW = BesselLaw(10)
START = (0.2, -0.8, 0.5)


def state(alpha, w, b):
    return ReducedState(jnp.asarray(alpha), jnp.asarray(w), jnp.asarray(b))


def brute_force(law, point, clip, radii=400_000, angles=400):
    """The projected field by the midpoint rule in probability and in the cosine; no moments, no
    pieces.
    """
    alpha, w, b = float(point.alpha), np.asarray(point.w), np.asarray(point.b)
    r = np.asarray(law.ppf((np.arange(radii) + 0.5) / radii))
    z = b + w * alpha * r[:, None]
    on = z > 0
    e = np.maximum(1 - r, 0) - np.maximum(z, 0).mean(1)
    w_speed = np.clip((e * alpha * r)[:, None] * on, -clip.weight, clip.weight).mean(0)
    b_speed = np.clip(e[:, None] * on, -clip.bias, clip.bias).mean(0)
    s = e * (on @ w) / len(w)
    norm = math.sqrt(alpha / law.gain)
    c = (
        np.arange(angles) + 0.5
    ) / angles  # cosine in (0, 1), density (1 - c^2)^((d - 3)/2) over the half sphere
    density = (1 - c**2) ** ((law.d - 3) / 2)
    density /= 2 * density.sum()
    g = np.abs(s * norm * r)
    rate = 0.0
    for cosine, weight in zip(
        c, density, strict=True
    ):  # the radial part of a projected pull is 2 S n r cos, shrunk
        size = g * math.sqrt(1 + 3 * cosine**2)
        shrink = np.minimum(1, clip.first / np.maximum(size, 1e-300))
        rate += weight * np.mean(2 * cosine * s * norm * r * shrink)
    return ReducedState(2 * law.gain * norm * rate, w_speed, b_speed), 0.5 * np.mean(e**2)


@pytest.mark.parametrize(
    "clip", [Thresholds(), Thresholds(0.3, 0.05, 0.2)], ids=["free", "projected"]
)
def test_field_against_brute_force(clip):
    law = UniformRadius(6, 2.5)
    point = state(0.7, [-0.9, -0.3, 0.2], [0.8, 0.4, 0.1])
    field, loss = brute_force(law, point, clip)
    found = reduced_field(law, point, clip)
    assert_allclose(found.w, field.w, atol=2e-5)
    assert_allclose(found.b, field.b, atol=2e-5)
    assert_allclose(found.alpha, field.alpha, atol=2e-5)
    assert_allclose(reduced_loss(law, point), loss, atol=1e-5)


def test_projections_on_the_line():
    # d = 1, r = 1/2: a neuron v > 0 sees half the inputs and moves by mean(g 1{x > 0}) =
    # clip(2 S |v| r, R) / 2 with S = (f* - f) w, alpha = v^2 / 2; f* = 1/2, f = b + w alpha r
    norm, w, b = 1.2, -0.4, 0.9
    state = ReducedState(jnp.asarray(norm**2 / 2), jnp.array([w]), jnp.array([b]))
    pull = (0.5 - (b + w * norm**2 / 4)) * w
    for bound in (0.05, 10.0):
        speed = reduced_field(FixedRadius(1, 0.5), state, clip=(bound, bound, bound))
        assert_allclose(speed.alpha, norm * min(2 * pull * norm / 2, bound) / 2, rtol=1e-12)


def test_worked_trajectory():
    path = reduced_flow(LAW, *START, [10.0, 40.0])
    assert_allclose(path.alpha[-1], 0.41048983012, rtol=1e-9)
    assert_allclose(
        [path.w[-1], path.b[-1], path.loss[-1]], [-1.20568492, 0.77057241, 0.00430636045], rtol=1e-8
    )


def test_several_equal_neurons_are_one():
    one = reduced_flow(LAW, *START, [10.0, 40.0])
    four = reduced_flow(LAW, 0.2, np.full(4, -0.8), np.full(4, 0.5), [10.0, 40.0])
    assert four.w.shape == (2, 4)
    assert_allclose(four.w, np.repeat(one.w[:, None], 4, axis=1), rtol=1e-9)


def test_euler_steps_and_their_first_order():
    exact = -1.20568492
    errors = [
        float(reduced_flow(LAW, *START, 40.0, rate=rate).w[0]) - exact for rate in (1.0, 0.5, 0.25)
    ]
    assert_allclose(errors, [-2.24e-3, -1.11e-3, -5.6e-4], atol=6e-6)
    reference = reduced_flow(LAW, *START, 40.0, rate=0.1)
    assert_allclose(
        [reference.alpha[0], reference.w[0], reference.b[0]],
        [0.41051899, -1.20590703, 0.77063201],
        rtol=2e-8,
    )


def test_invariant_and_energy_identity():
    w, b = [-0.8, -0.5, -0.7, -0.4], [0.5, 0.6, 0.4, 0.7]
    path = reduced_flow(LAW, 0.2, w, b, [3.0, 30.0])
    invariant = np.asarray(path.alpha) - 2 * LAW.gain * np.mean(np.asarray(path.w) ** 2, axis=1)
    assert_allclose(invariant, 0.2 - 2 * LAW.gain * np.mean(np.square(w)), rtol=1e-8)
    point = state(0.2, w, b)
    field = reduced_field(LAW, point, Thresholds())
    moved = lambda h: reduced_loss(LAW, jax.tree.map(lambda x, v: x + h * v, point, field))
    rate = (moved(1e-5) - moved(-1e-5)) / 2e-5
    # |v1'|^2 = (|v1| alpha' / 2 alpha)^2 with |v1|^2 = alpha / gain
    energy = (
        jnp.mean(field.w**2) + jnp.mean(field.b**2) + field.alpha**2 / (4 * point.alpha * LAW.gain)
    )
    assert_allclose(rate, -energy, rtol=1e-7)


def test_fixed_point_is_at_rest():
    alpha, w = (2 * LAW.gain) ** (1 / 3), -((2 * LAW.gain) ** (-1 / 3))
    field = reduced_field(LAW, state(alpha, [w], [1.0]), Thresholds())
    assert_allclose(np.concatenate([np.atleast_1d(x) for x in field]), 0.0, atol=1e-12)
    assert float(reduced_loss(LAW, state(alpha, [w], [1.0]))) < 1e-14


def test_stage_times_of_the_worked_example():
    w, b = np.array([2, -1, 0.5, -2]) * 1e-6, np.full(4, 0.3)
    stages = reduced_stages(
        LAW, alpha_of_norm(10, 10**-0.5), w, b, clip=(100, 1000, 10), epsilon=1e-2
    )
    assert_allclose(
        [stages.t11, stages.t12, stages.t1, stages.t2],
        [2.4205e-4, 5.04487e-3, 0.159321, 108.541],
        rtol=2e-5,
    )
    at = stages.state_at_t1
    assert_allclose(
        [at.alpha, at.b.mean(), reduced_loss(LAW, at)], [0.0129348, 0.326108, 0.048502], rtol=2e-5
    )
    assert stages.order_ok
    assert stages.level_time == pytest.approx(stages.t1, rel=1e-6)


def test_an_event_inside_a_bent_step_is_found():
    # the arcsine law has a corner at its edge: Newton's method on the dense output does not
    # converge here
    law, clip = ArcsineLaw(3), (30.0, 27.0, 10.0)
    start = alpha_of_norm(3, 3**-0.5), np.array([2, -1, 0.5, -2]) * 1e-6, np.full(4, 0.3)
    stages = reduced_stages(law, *start, clip=clip, epsilon=3e-2, horizon=40.0)
    loss = reduced_flow(law, *start, stages.t2, clip=clip).loss[0]
    assert float(loss) == pytest.approx(3e-2, rel=1e-7)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (-1e-6, (108.54069621, 163.67959189, 212.62723139)),
        (-1e-3, (108.45668003, 163.59557594, 212.54321555)),  # the tabulated 108.5, 163.6, 212.5
    ],
)
def test_times_to_loss_levels_from_a_small_first_layer(weight, expected):
    # SciPy's DOP853 at 1e-11 on closed forms of M0, M2 and Gauss-Legendre sums for M1, written
    # apart from this package
    times = [
        time_to_loss(LAW, alpha_of_norm(10, 10**-0.5), weight, 0.3, level)
        for level in (1e-2, 1e-3, 1e-4)
    ]
    assert_allclose(times, expected, rtol=1e-6)


def test_times_to_loss_levels_from_norm_one():
    times = [
        time_to_loss(LAW, alpha_of_norm(10, 1.0), -1e-6, 0.3, level) for level in (1e-2, 1e-3, 1e-4)
    ]
    assert_allclose(times, (48.7, 103.2, 151.9), atol=0.06)  # tabulated to one decimal


def test_times_on_a_gaussian_law():
    # LSODA on the closed forms of M0, M1, M2 with SciPy's incomplete gamma function, written apart
    # from this package
    law = GaussianRadius(5)
    times = [time_to_loss(law, alpha_of_norm(5, 1.0), -0.01, 0.3, level) for level in (1e-3, 1e-4)]
    assert_allclose(times, [155.317006, 236.419487], rtol=1e-6)


class Reference:
    """The one-neuron system at d = 10 with the elementary forms of M0 and M2 and a spline for the
    integral of J_5^2.
    """

    def __init__(self, ab):
        radius = gamma(6.0) ** 0.1 / math.sqrt(math.pi)
        self.scale = 2 * math.pi * radius * math.sqrt(10.0) * ab
        self.gain = gamma(5.0) / (2 * math.sqrt(math.pi) * gamma(5.5))
        grid = np.arange(0.0, 3000.0, 0.02)
        self.squares = CubicSpline(grid, jv(5, grid) ** 2).antiderivative()

    def moments(self, a):
        x = self.scale * a
        j = jv(np.arange(7), x)
        outside = j[0] ** 2 + 2 * np.sum(j[1:5] ** 2) + j[5] ** 2
        lommel = x**2 / 2 * (j[5] ** 2 - j[4] * j[6])
        return 1 - outside, 10 / self.scale * self.squares(x), 10 / self.scale**2 * lommel

    def parts(self, alpha, w, b):
        rho, slope = b / (-w * alpha), w * alpha
        m, r, one = (self.moments(a) for a in (min(1.0, rho), rho, 1.0))
        zeroth = m[0] - m[1] - b * r[0] - slope * r[1]
        first = m[1] - m[2] - b * r[1] - slope * r[2]
        cross = b * m[0] + (slope - b) * m[1] - slope * m[2]
        square = b**2 * r[0] + 2 * b * slope * r[1] + slope**2 * r[2]
        return zeroth, first, 0.5 * (one[0] - 2 * one[1] + one[2] - 2 * cross + square)

    def time_to_loss(self, start, epsilon):
        def field(t, y):
            zeroth, first, _ = self.parts(*y)
            return [4 * self.gain * y[0] * y[1] * first, y[0] * first, zeroth]

        event = lambda t, y: math.log(self.parts(*y)[2] / epsilon)
        event.terminal = True
        options = dict(method="LSODA", rtol=1e-11, atol=1e-13, events=event)
        return solve_ivp(field, (0.0, 1e4), start, **options).t_events[0][0]


def test_the_default_tolerance_gives_nine_digits_in_high_dimension():
    # 1e-9 a step left 7e-9 to 2.5e-8 of the time here; the reference is another integrator
    law, start = BesselLaw(100), np.array([0.1, -0.01, 0.35])
    at = lambda y: ReducedState(y[0], y[1:2], y[2:])
    field = jax.jit(lambda y: jnp.hstack(reduced_field(law, at(y))))
    loss = jax.jit(lambda y: reduced_loss(law, at(y)))
    event = lambda t, y: math.log(float(loss(y)) / 1e-3)
    event.terminal = True
    options = dict(method="DOP853", rtol=1e-12, atol=1e-15, events=event)
    path = solve_ivp(lambda t, y: np.asarray(field(y)), (0.0, 1e3), start, **options)
    assert time_to_loss(law, *start, 1e-3) == pytest.approx(path.t_events[0][0], rel=1e-9)


def test_ordinary_starts_all_arrive():
    # where the speed of w happens to vanish, a first step set by w alone is endless: its trial
    # stages leave the domain
    law, reference = BesselLaw(10, 1.3), Reference(1.3)
    assert time_to_loss(law, 0.17, -0.65, 0.45, 1e-3) == pytest.approx(75.743205, rel=1e-7)
    rng = np.random.default_rng(0)
    starts = np.stack(
        [rng.uniform(0.05, 0.8, 300), -rng.uniform(0.1, 2.0, 300), rng.uniform(0.2, 1.2, 300)], 1
    )
    times = [time_to_loss(law, *start, 1e-3) for start in starts]
    assert np.isfinite(times).all()
    expected = [reference.time_to_loss(start, 1e-3) for start in starts[:8]]
    assert_allclose(times[:8], expected, rtol=3e-7)


def test_a_solver_that_gives_up_is_not_a_level_that_is_never_reached():
    law = UniformRadius(10, 2.0)  # quick to compile
    assert math.isinf(time_to_loss(law, *START, 1e-3, horizon=10.0))
    with pytest.raises(ValueError, match="`max_steps` = 7"):
        time_to_loss(law, *START, 1e-3, max_steps=7)
    with pytest.raises(ValueError, match="`max_steps` = 7"):
        reduced_flow(law, *START, 40.0, max_steps=7)


def test_loss_is_infinite_with_a_positive_weight():
    assert math.isinf(float(reduced_loss(LAW, state(0.2, [-0.5, 1e-9], [0.3, 0.3]))))
    with pytest.raises(ValueError, match="`w`"):
        reduced_flow(LAW, 0.2, [-0.5, 1e-9], [0.3, 0.3], 1.0)
    reduced_flow(UniformRadius(10, 2.0), 0.2, [-0.5, 1e-9], [0.3, 0.3], 1.0)  # no tail, no trouble


def test_step_bound_at_the_limit_of_training():
    # at the fixed point rho = 1, so lambda = M0(1) + A^2 M2(1) with A^2 = alpha^2 + 4 g w^2 alpha
    alpha, w = (2 * LAW.gain) ** (1 / 3), -((2 * LAW.gain) ** (-1 / 3))
    m0, _, m2 = LAW.moments(1.0)
    assert_allclose(
        step_bound(LAW, alpha, w, 1.0),
        m0 + (alpha**2 + 4 * LAW.gain * w**2 * alpha) * m2,
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reduced_flow(LAW, -0.2, -0.8, 0.5, 1.0), "`alpha`"),
        (lambda: reduced_flow(LAW, 0.2, [-0.8, -0.1], 0.5, 1.0), "`w` and `b`"),
        (lambda: reduced_flow(LAW, 0.2, -0.8, math.nan, 1.0), "`b`"),
        (lambda: reduced_flow(LAW, *START, [2.0, 1.0]), "`time`"),
        (lambda: reduced_flow(LAW, *START, 1.0, rate=-0.1), "`rate`"),
        (lambda: reduced_flow(LAW, *START, 1.0, clip=(1.0, -1.0, 1.0)), "`clip`"),
        (lambda: reduced_stages(LAW, *START, clip=None, epsilon=0.1), "`clip`"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


LAWS = [BesselLaw(6), ArcsineLaw(6), GaussianRadius(6), GaussianRadius(1), UniformRadius(6)]
# at the second state 1 - mean(b) is 0, at the third 1 - b and the sum over the neurons that see all
STATES = [
    (0.3, [-0.8, -0.8, -0.3], [0.5, 0.5, 0.6]),
    (0.3, [-0.8, -0.3], [1.4, 0.6]),
    (0.3, [-0.8, -0.5], [1.0, -0.2]),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{type(law).__name__}{law.d}")
def test_the_field_is_the_gradient_of_the_loss(law):
    # w and b move by -m2 times their gradients; alpha = g mean|w1|^2 by -m1 times those of w1,
    # which is -4 g alpha dL/dalpha
    for point in STATES:
        point = state(*point)
        field, slope = reduced_field(law, point), jax.grad(lambda y: reduced_loss(law, y))(point)
        assert_allclose(field.alpha, -4 * law.gain * point.alpha * slope.alpha, atol=1e-12)
        assert_allclose(field.w, -len(point.w) * slope.w, atol=1e-12)
        assert_allclose(field.b, -len(point.b) * slope.b, atol=1e-12)


@pytest.mark.parametrize("law", [BesselLaw(6), GaussianRadius(1)], ids=["Bessel", "line"])
@pytest.mark.parametrize("clip", [(5.0, 5.0, 5.0), (0.02, 0.03, 0.1), (math.inf, 0.03, 0.1)])
def test_the_projected_field_has_derivatives(law, clip):
    base, direction = np.array([0.3, -0.8, -0.3, 0.5, 0.6]), np.array([0.3, -0.5, 0.2, 0.4, -0.7])

    def total(y):
        speed = reduced_field(law, ReducedState(y[0], y[1:3], y[3:]), clip)
        return speed.alpha + speed.w @ jnp.array([0.7, -0.4]) + speed.b @ jnp.array([0.2, 1.1])

    rise = total(base + 1e-5 * direction) - total(base - 1e-5 * direction)
    slope = jax.grad(total)(jnp.asarray(base)) @ direction
    assert_allclose(slope, rise / 2e-5, rtol=1e-5)
