r"""Gradient flow $\dot\theta = -c\,\nabla L(\theta)$."""

import dataclasses
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._core.activations import Activation
from .._core.errors import check_choice, check_count, check_positive
from .._core.precision import cast, double
from .._core.trees import parameters, with_parameters, zeros_of
from ..data.dataset import DatasetObjective
from ..models.shallow import Shallow
from .base import AbstractFlow
from .gradient_flow.diffrax_solver import SOLVERS, DiffraxSolver, DiffraxState
from .gradient_flow.explicit_descent import DescentState, ExplicitDescent
from .gradient_flow.exponential_integrator import (
    NOISE,
    ExponentialIntegrator,
    IntegratorState,
    largest_rate,
    loss_rounding,
)
from .gradient_flow.filippov import SlidingJacobian
from .gradient_flow.jacobian import ShallowJacobian, jacobian_of, reduced
from .gradient_flow.linearisation import GramProblem, output_hessian
from .gradient_flow.matrix_functions import AbstractAction, Dense, Krylov

# what smooth problems give cheaply by a method of order three, and what kinked ones give at a
# bearable number of steps (chosen)
SMOOTH_TOLERANCE, KINKED_TOLERANCE, DESCENT_TOLERANCE = 1e-8, 1e-3, 3e-5
PRODUCTS = 50  # of Lanczos for a stage (seen on the plant and MNIST)
# explicit attempts before "auto" looks how stiff the problem is (chosen: more than most easy
# problems take)
EASY = 32
# above it an eigen decomposition costs more than Lanczos on the Jacobian (chosen)
DENSE_ENTRIES = 3000
# of exponentials: 20 + 1.5 tolerance^(-1/3), the method being of order three (chosen)
EXPECTED_STEPS = (20, 1.5)
STAGES = 3  # of a step of exponentials
# of gradients, that "auto" may spend on descent of kinked networks: about half a minute on two
# cores (measured)
DESCENT_OPERATIONS = 1e11
# operations in whose time a step begins and ends, whatever its size (measured: some microseconds)
PER_STEP = 1e4


class FlowState(eqx.Module):
    """What a flow carries from one recording time to the next.

    Attributes:
        steps, evaluations: so far; an evaluation is a forward pass of the network.
        rate: the fastest decay, once "auto" has computed it.
        diffrax, exponential: the solvers' last steps, which may reach beyond the recording time.
        descent: where descent of a kinked network stands; under "auto" the exponential flow starts
            there too.
        switched: whether "auto" has left the explicit Runge-Kutta method.
        failed, stationary: why the run cannot, or need not, go on.
    """

    steps: Int[Array, ""]
    evaluations: Int[Array, ""]
    rate: Float[Array, ""]
    diffrax: DiffraxState | None
    exponential: IntegratorState | None
    descent: DescentState | None
    switched: Array
    failed: Array
    stationary: Array


class GradientFlow(AbstractFlow):
    r"""The flow itself.

    Along it the loss never rises: a step, or a record inside a step, that would raise it beyond
    rounding is taken again, shorter.

    Args:
        tolerance: the error allowed per step: relative to the parameters for Diffrax's solvers, to
            the output gradient (the residual, for squared losses) for the exponential flow, so that
            the loss is relatively off by about twice as much a step. What that makes of the loss at
            the end is measured in the guide "Flow or descent?". For "descent" it is the difference,
            of residuals and of losses, that paths in steps of $h$ and of $h/2$ may have at the end
            of a recording interval. Default: 1e-8; for kinked activations, whose solution is one in
            Filippov's sense, 3e-5 for descent and 1e-3 for the exponential flow ("auto" never asks
            them for less).
        method: "gram" (the exponential flow: dense for up to 3000 entries sample x output, else
            "krylov"), "krylov", "descent" (explicit steps in proportion to $1/\lambda_{\max}$, each
            interval walked twice), one of Diffrax's "tsit5", "dopri8", "kvaerno5", or "auto".
        depth: of the Krylov spaces at most; they grow until nothing is missing.
        max_steps: per recording interval; beyond it the run stops as stalled. For "descent" it
            counts the steps of all paths, and finer paths are walked as far as it allows.
        most_steps: the old name of `max_steps`, deprecated.

    Where the path inside a step is known (Diffrax's solvers; the exponential flow of smooth
    networks and squared losses) steps do not end at recording times: what is recorded in between
    comes from the step's own formula, so that recording often costs little and changes nothing.
    Elsewhere (kinks, other losses, "krylov") steps end at recording times.

    "auto" starts with the explicit `tsit5` and goes over to the exponential flow once the explicit
    solver has done as much work as the exponential flow is expected to need; on easy problems that
    moment never comes, on stiff ones little is lost. With kinked activations it goes over to
    descent wherever all that is left of the run can be walked twice at $h = 1/(4\lambda_{\max})$
    within 1e11 operations of gradients (about half a minute on two cores), 1e4 added a step; what
    is left of these operations pays for finer steps. Elsewhere the exponential flow goes on, and
    where that finds no step, descent walks the interval, if it is affordable. Clocks have no part
    in the choice. Populations, which have no training points and hence no Gram matrix, stay with
    `tsit5`.
    """

    tolerance: float | None = eqx.field(static=True)
    method: str = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)

    @double
    def __init__(
        self,
        tolerance: float | None = None,
        method: str = "auto",
        depth: int = 200,
        max_steps: int = 1_000_000,
        most_steps: int | None = None,
    ):
        if tolerance is not None:
            check_positive("tolerance", tolerance)
            tolerance = float(tolerance)
        if most_steps is not None:
            warnings.warn("`most_steps` is now called `max_steps`.", DeprecationWarning, 3)
            max_steps = most_steps
        check_choice("method", method, ("auto", "gram", "krylov", "descent", *SOLVERS))
        check_count("depth", depth, least=2)
        check_count("max_steps", max_steps)
        self.tolerance, self.method = tolerance, method
        self.depth, self.max_steps = depth, max_steps

    def init(self, model, objective, key):
        no, zero = jnp.zeros((), bool), jnp.zeros((), int)
        diffrax, exponential, descent, rate = None, None, None, jnp.asarray(jnp.nan)
        method = self._method(objective)
        small, fewer, _ = self._prepared(model, objective)
        theta = parameters(small)
        if method in SOLVERS or method == "auto":
            diffrax = self._diffrax().init(
                _field(small, fewer), self._loss(small, fewer), theta, 0.0
            )
        if self._descends(method, model):
            descent = self._descent(model).init(theta, 0.0)
        if method not in (*SOLVERS, "descent"):
            integrator, problem = self._integrator(model), self._problem(small, fewer)
            begin = lambda theta: integrator.init(problem, theta, 0.0)
            # "auto" computes nothing of the exponential flow before it is needed
            exponential = zeros_of(begin, theta) if method == "auto" else begin(theta)
        count = zero + (1 if diffrax is None else 2)
        return FlowState(zero, count, rate, diffrax, exponential, descent, no, no, no)

    def advance(self, model, state, objective, start, stop, horizon=None):
        start, stop = jnp.asarray(start, float), jnp.asarray(stop, float)
        horizon = stop if horizon is None else jnp.asarray(horizon, float)
        small, fewer, whole = self._prepared(model, objective)
        loss, before = self._loss(small, fewer), parameters(small)
        eps = jnp.finfo(jax.tree.leaves(parameters(model))[0].dtype).eps
        coarser = eps / jnp.finfo(float).eps  # single-precision records are rounded more

        def attempt(carry):
            """On from the last step; or, where the record inside it would show a rise, from the
            last record and exactly to this one.
            """
            now, attempts, _, _ = carry
            exactly = attempts > 0
            now = jax.lax.cond(
                exactly, lambda: self._rewound(model, small, fewer, now, start), lambda: now
            )
            theta, now = self._advanced(model, small, fewer, now, stop, horizon, exactly)
            value, (high, rounding) = loss(theta)[0], loss(before)
            end, end_loss = _last_step(now)
            # inside a step the loss lies between those of the last record and of the step's end,
            # for it falls
            low = jnp.where(end > stop, end_loss, -jnp.inf)
            allowed = coarser * rounding
            rises = (value > high + allowed) | (value < low - allowed)
            return now, attempts + 1, theta, rises

        # at most twice: a step that ends at the record has been checked by its solver
        again = lambda carry: (carry[1] == 0) | ((carry[1] == 1) & carry[3])
        first = (state, jnp.zeros((), int), before, jnp.zeros((), bool))
        state, _, theta, _ = jax.lax.while_loop(again, attempt, first)
        return _rounded(model, parameters(whole(with_parameters(small, theta)))), state

    def _advanced(self, model, small, fewer, state: FlowState, stop, horizon, exactly):
        """The parameters at `stop`, and the state after steps by whichever solver's turn it is."""
        method = self._method(fewer)
        if method in SOLVERS:
            solver = self._diffrax()
            moved = solver.advance(
                _field(small, fewer),
                self._loss(small, fewer),
                _diffrax_of(state),
                stop,
                self.max_steps,
                exactly,
            )
            state = _counted(state, solver, moved)
            failed = state.failed | (moved.end < stop)
            return solver.interpolate(moved, stop), dataclasses.replace(state, failed=failed)
        if method == "descent":
            state = self._walked(model, small, fewer, state, stop, stop, self.max_steps)
            return _descent_of(state).theta, state
        if method != "auto":
            return self._exponential(model, small, fewer, state, stop, exactly)
        state = self._explicit_share(model, small, fewer, state, stop, exactly)

        def explicitly():
            return self._diffrax().interpolate(_diffrax_of(state), stop), state

        def switched():
            if state.descent is not None:
                return self._kinked(model, small, fewer, state, stop, horizon)
            return self._exponential(model, small, fewer, state, stop, exactly)

        return jax.lax.cond(state.switched, switched, explicitly)

    def _rewound(self, model, small, fewer, state: FlowState, start) -> FlowState:
        """Back at the last record, whose model `small` is."""
        theta, no = parameters(small), jnp.zeros((), bool)
        diffrax, exponential = state.diffrax, state.exponential
        if diffrax is not None:
            diffrax = self._diffrax().restart(
                _field(small, fewer), self._loss(small, fewer), diffrax, theta, start
            )
        if exponential is not None:
            problem = self._problem(small, fewer)
            exponential = self._integrator(model).restart(problem, exponential, theta, start)
        descent = state.descent
        if descent is not None:
            descent = self._descent(model).restart(descent, theta, start)
        return dataclasses.replace(
            state,
            diffrax=diffrax,
            exponential=exponential,
            descent=descent,
            failed=no,
            stationary=no,
        )

    def _explicit_share(self, model, small, fewer, state: FlowState, stop, exactly) -> FlowState:
        """Explicit steps for as long as they are the cheaper ones; then the exponential flow starts
        where they ended.
        """
        solver, integrator = self._diffrax(), self._integrator(model)
        problem, before = self._problem(small, fewer), _diffrax_of(state)
        field, loss = _field(small, fewer), self._loss(small, fewer)
        # in explicit evaluations: what the exponential flow is expected to cost
        fixed, by_order = EXPECTED_STEPS
        steps = fixed + by_order * integrator.tolerance ** (-1 / 3)
        budget = _relative_cost(small, fewer, problem.action) * STAGES * steps
        # attempts of the whole run, from time 0 on, so that many short intervals get no more than
        # one long one
        most = EASY + int(budget / solver.evaluations)

        def share(looked, carry):
            """A few steps; and, after a look at how stiff the problem is, as many as pay.

            One loop takes both shares, so that a step is compiled once.
            """
            now, rate, _ = carry
            hard = ~state.switched & (now.end < stop)
            rate_needed = looked & hard & jnp.isnan(rate)
            rate = jax.lax.cond(
                rate_needed,
                lambda: largest_rate(problem, problem.linearise(now.theta)),
                lambda: rate,
            )
            # Tsit5 is stable up to 3.5 / rate at 6 evaluations a step: `budget` of them, spent from
            # time 0 on, reach about budget / (2 rate)
            stable = jnp.where(looked, jnp.minimum(stop, budget / (2 * rate)), stop)
            until = jnp.where(hard, stable, -jnp.inf)
            # before the look `EASY` attempts in all; a run that has taken more goes on only after
            # it
            left = jnp.where(looked, most, jnp.maximum(EASY, now.attempts)) - now.attempts
            return solver.advance(field, loss, now, until, left, exactly), rate, rate_needed

        carry = (before, state.rate, jnp.zeros((), bool))
        body = lambda turn, carry: share(turn == 1, carry)
        moved, rate, rate_needed = jax.lax.fori_loop(0, 2, body, carry)
        switches = ~state.switched & (moved.end < stop)
        exponential = jax.lax.cond(
            switches,
            lambda: integrator.init(problem, moved.theta, moved.end),
            lambda: state.exponential,
        )
        state = _counted(state, solver, moved)
        descent = state.descent
        if descent is not None:
            # both branches of a `where` are computed, but a restart costs nothing: no forward pass
            there = self._descent(model).restart(descent, moved.theta, moved.end)
            descent = jax.tree.map(lambda a, b: jnp.where(switches, a, b), there, descent)
        return dataclasses.replace(
            state,
            rate=rate,
            exponential=exponential,
            descent=descent,
            switched=state.switched | switches,
            evaluations=state.evaluations + rate_needed + switches,
        )

    def _exponential(self, model, small, fewer, state: FlowState, stop, exactly):
        """The exponential flow up to `stop`: the parameters there, and the state."""
        integrator, problem = self._integrator(model), self._problem(small, fewer)
        exactly = exactly | (not integrator.has_dense_output(problem))
        before = _exponential_of(state)
        moved = integrator.advance(problem, before, stop, self.max_steps, exactly)
        reached = moved.end >= stop
        return integrator.interpolate(problem, moved, stop), dataclasses.replace(
            state,
            exponential=moved,
            steps=state.steps + moved.steps - before.steps,
            evaluations=state.evaluations + moved.evaluations - before.evaluations,
            failed=state.failed | (~reached & ~moved.still),
            stationary=state.stationary | (moved.still & (moved.end <= stop)),
        )

    def _kinked(self, model, small, fewer, state: FlowState, stop, horizon):
        """Descent to `stop` where all that is left of the run is affordable; else the exponential
        flow, and descent from where that cannot go on.
        """
        solver, integrator = self._descent(model), self._integrator(model)
        before, plain = _descent_of(state), self._matrix_free(small, fewer)
        most = DESCENT_OPERATIONS / (_gradient_operations(small, fewer) + PER_STEP)
        left = jnp.maximum(most - before.evaluations, 0.0)
        affordable = solver.least_evaluations(plain, before, horizon) <= left

        def exponentially():
            problem = self._problem(small, fewer)
            begun = _exponential_of(state)
            # where descent, or nothing, was last
            begun = jax.lax.cond(
                begun.end == before.end,
                lambda: begun,
                lambda: integrator.restart(problem, begun, before.theta, before.end),
            )
            moved = dataclasses.replace(state, exponential=begun)
            theta, moved = self._exponential(model, small, fewer, moved, stop, True)
            descent = solver.restart(before, theta, _exponential_of(moved).end)
            return dataclasses.replace(moved, descent=descent, failed=state.failed)

        state = jax.lax.cond(affordable, lambda: state, exponentially)
        # twice the budget for a rate that grows on the way; this interval alone where the
        # exponential flow gave up
        horizon = jnp.where(affordable, horizon, stop)
        state = self._walked(model, small, fewer, state, stop, horizon, left + most)
        return _descent_of(state).theta, state

    def _walked(self, model, small, fewer, state: FlowState, stop, horizon, most) -> FlowState:
        """Descent up to `stop`, unless the flow is there or has come to rest."""
        # at -inf the loop ends before its first stretch
        before, until = _descent_of(state), jnp.where(state.stationary, -jnp.inf, stop)
        problem = self._matrix_free(small, fewer)
        moved = self._descent(model).advance(problem, before, until, horizon, most)
        return dataclasses.replace(
            state,
            descent=moved,
            steps=state.steps + moved.steps - before.steps,
            evaluations=state.evaluations + moved.evaluations - before.evaluations,
            failed=state.failed | moved.stuck,
            stationary=state.stationary | moved.still,
        )

    def _descends(self, method: str, model) -> bool:
        return method == "descent" or (method == "auto" and has_kinks(model))

    def _method(self, objective) -> str:
        if isinstance(objective, DatasetObjective):
            return self.method
        if self.method in ("gram", "krylov", "descent"):
            raise ValueError(
                f"`method` {self.method!r} needs training points, but the run is on an exact "
                "population; "
                "use `method='tsit5'` or train on a `Dataset`."
            )
        return self.method if self.method in SOLVERS else "tsit5"

    def _prepared(self, model, objective):
        """In 64 bit and, for the exponential flow, in the fewest coordinates; with the way back."""
        model, objective = cast(model, "float64"), cast(objective, "float64")
        if self._method(objective) in SOLVERS:
            return model, objective, lambda moved: moved
        return reduced(model, objective)

    def _diffrax(self) -> DiffraxSolver:
        name = self.method if self.method in SOLVERS else "tsit5"
        return DiffraxSolver(name, self.tolerance or SMOOTH_TOLERANCE)

    def _integrator(self, model) -> ExponentialIntegrator:
        return ExponentialIntegrator(self._tolerance(model), has_kinks(model))

    def _descent(self, model) -> ExplicitDescent:
        if self.method == "descent":
            return ExplicitDescent(self.tolerance or DESCENT_TOLERANCE)
        return ExplicitDescent(max(self.tolerance or 0.0, DESCENT_TOLERANCE))

    def _loss(self, model, objective):
        """Parameters to the loss and its rounding error: the most by which a step may raise it.

        Diffrax's solvers chatter about kinks with the tolerance as amplitude; where one of them is
        requested by name, the loss may do the same.
        """
        unchecked = self.method in SOLVERS and has_kinks(model)
        return lambda theta: _loss_and_rounding(with_parameters(model, theta), objective, unchecked)

    def _matrix_free(self, small, objective) -> GramProblem:
        """For descent, which needs no Gram matrix."""
        operator, targets = jacobian_of(small, objective.features), jnp.asarray(objective.targets)
        return GramProblem(operator, targets, objective.loss, Krylov(depth=self.depth))

    def _problem(self, small, objective) -> GramProblem:
        entries = objective.targets.size
        dense = self.method != "krylov" and entries <= DENSE_ENTRIES
        action = Dense() if dense else Krylov(depth=self.depth)
        operator = jacobian_of(small, objective.features)
        if isinstance(operator, ShallowJacobian) and has_kinks(small):
            operator = SlidingJacobian(operator)
        return GramProblem(operator, jnp.asarray(objective.targets), objective.loss, action)

    def _tolerance(self, model) -> float:
        """Of the exponential flow."""
        if not has_kinks(model):
            return self.tolerance or SMOOTH_TOLERANCE
        if self.method == "auto":
            return max(self.tolerance or 0.0, KINKED_TOLERANCE)
        return self.tolerance or KINKED_TOLERANCE


def _field(model, objective):
    r"""$-c\,\nabla L$ as Diffrax takes it."""
    factors = model.rate_factors()

    def field(_, theta, __):
        _, gradient = objective.gradient(with_parameters(model, theta))
        return {name: -factors[name] * gradient[name] for name in theta}

    return field


def _loss_and_rounding(model, objective, unchecked: bool):
    if not isinstance(objective, DatasetObjective):
        value = objective.value(model)
        return value, NOISE * jnp.finfo(value.dtype).eps * (1 + jnp.abs(value))
    outputs, targets = objective.outputs(model), objective.targets
    value, gradient = objective.loss.value_and_gradient(outputs, targets)
    largest = output_hessian(objective.loss, outputs, targets).largest_eigenvalue()
    rounding = loss_rounding(outputs, targets, value, gradient, largest)
    return value, jnp.full_like(rounding, jnp.inf) if unchecked else rounding


def _diffrax_of(state: FlowState) -> DiffraxState:
    """Diffrax's part of the state, which its methods and "auto" have."""
    assert state.diffrax is not None
    return state.diffrax


def _exponential_of(state: FlowState) -> IntegratorState:
    """The exponential flow's part, which "gram", "krylov" and "auto" have."""
    assert state.exponential is not None
    return state.exponential


def _descent_of(state: FlowState) -> DescentState:
    """The descent's part, which "descent" has, and "auto" for kinked networks."""
    assert state.descent is not None
    return state.descent


def _counted(state: FlowState, solver: DiffraxSolver, moved: DiffraxState) -> FlowState:
    """After steps by Diffrax."""
    before = _diffrax_of(state)
    spent = solver.evaluations * (moved.attempts - before.attempts)
    return dataclasses.replace(
        state,
        diffrax=moved,
        steps=state.steps + moved.steps - before.steps,
        evaluations=state.evaluations + spent,
    )


def _last_step(state: FlowState):
    """When the last step ended, and the loss there."""
    if state.exponential is None and state.diffrax is None:
        return _descent_of(state).end, jnp.asarray(-jnp.inf)
    if state.exponential is None:
        return _diffrax_of(state).end, _diffrax_of(state).loss
    here = (state.exponential.end, state.exponential.last.end.loss)
    if state.diffrax is None:
        return here
    there = (state.diffrax.end, state.diffrax.loss)
    return tuple(jnp.where(state.switched, a, b) for a, b in zip(here, there))


def _rounded(model, theta):
    """`model` at `theta`, in the precision that it came in."""
    arrays = {name: theta[name].astype(old.dtype) for name, old in parameters(model).items()}
    return with_parameters(model, arrays)


def _relative_cost(model, objective, action: AbstractAction) -> float:
    """A stage of the exponential flow in units of one gradient, by counting operations.

    An eigen decomposition is taken as 30 entries^3, for its operations are slower than those of
    products (chosen).
    """
    samples, entries = objective.features.shape[0], objective.targets.size
    size = sum(leaf.size for leaf in parameters(model).values())
    gradient = _gradient_operations(model, objective)
    if isinstance(model, Shallow):
        gram = 2.0 * entries**2 * model.width
    else:
        gram = 4.0 * entries * samples * size
    if isinstance(action, Krylov):
        products = min(action.depth, PRODUCTS)
        orthogonalising = 8.0 * products * entries  # twice two products with the basis
        return 1 + products * (1 + orthogonalising / gradient)
    return 1 + (gram + 30.0 * entries**3) / gradient


def _gradient_operations(model, objective) -> float:
    """Of one gradient: two products with the weights, and about 5 products' worth of work a
    pre-activation for the activation (chosen).
    """
    samples = objective.features.shape[0]
    size = sum(leaf.size for leaf in parameters(model).values())
    return 4.0 * samples * (size + (5 * model.width if isinstance(model, Shallow) else 0))


def has_kinks(thing) -> bool:
    """Whether any activation inside a model has a kink."""
    if isinstance(thing, Activation):
        return bool(thing.kinks)
    if isinstance(thing, tuple | list):
        return any(has_kinks(part) for part in thing)
    if dataclasses.is_dataclass(thing):
        return any(has_kinks(getattr(thing, f.name, None)) for f in dataclasses.fields(thing))
    return False
