r"""The exponential integrator of gradient flow: steps under an adaptive controller.

A step is accepted when its defect is below `tolerance` times the size of the output gradient *and*
the loss does not rise: the loss is a Lyapunov function of the flow, so a step that raises it,
inside or at its end, beyond what rounding explains, is none. For kinked activations pre-activations
that chatter about their kink leave a defect of first order in the step that no step size removes
faster; for steps below $0.05/\lambda_{\max}(H\Theta)$ (in proportion less for tolerances below
1e-2) descent alone decides: the limit is the Filippov solution. Where no step descends the
integrator says that it is stuck.

Where exponential steps fail again and again and the neurons' own curvature is fast against them,
the step is tried again with the whole Hessian (`rodas`), and so are the next ones.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from ..._core.trees import Parameters
from .commutator_free import CommutatorFree, CommutatorFreeAny, has_spectrum
from .filippov import Filippov, SlidingJacobian
from .jacobian import ShallowJacobian
from .linearisation import SQUARES, GramProblem, Linearisation, Outputs
from .rodas import Rodas, largest_norm
from .step_base import HOPELESS, PROBATION, AbstractDenseStep, AbstractStep, StepResult

# Of the controller (growth 1.5 to 8 and safety .7 to .85 were tried on energy and on concrete at
# gamma = .5, ReLU: these were the best).
GROW, SHRINK, SAFETY = 8.0, 0.2, 0.85
FLOOR = 0.05  # of 1/rate, at tolerance 1e-2: below it chatter decides the defect (chosen)
SHORTEST = 1e-10  # of 1/rate: where no longer step descends, none will (chosen)
# roundings in an output, in units of the machine precision (chosen; sums of some thousand terms
# round by about so much)
NOISE = 64
NEARLY = 1e4  # roundings above which nothing has come to rest (chosen)
STORED = 4  # roundings in a parameter, likewise (chosen: it is stored after a sum of a few terms)

# Of the change between exponentials and the whole Hessian (chosen; the case for it is airfoil,
# tanh, where exponentials stay at h = 20).
RODAS_STEPS = 30  # with the whole Hessian before exponentials are tried again
FAILURE = 4  # weighs as much as four successes
LIMIT = 8  # of failures less successes, from which on the whole Hessian is used
# step times largest block from which the whole Hessian may help; exponentials are stable up to
# about 2
STIFF = 1.0
LARGEST_JACOBIAN = 3e7  # entries of the weighted Jacobian that may be stored: 240 MB
LARGEST_COST = 3.0  # of a step with the whole Hessian, in operations of one by exponentials


class IntegratorState(eqx.Module):
    """The last step, and what the controller carries on.

    Attributes:
        begin, end: the times between which the last step lies.
        size: the length of the next step.
        start, last: where the last step began, and its result, whose `interpolant` is a tuple with
            room for every method.
        rodas: whether the last step took the whole Hessian.
        steps, attempts, evaluations: so far.
        rodas_left: steps for which the whole Hessian is still to be used. trouble: how often
            exponentials failed of late.
        still: nothing moves any more. stuck: no step is good enough, however short.
    """

    begin: Float[Array, ""]
    end: Float[Array, ""]
    size: Float[Array, ""]
    start: Linearisation
    last: StepResult
    rodas: Array
    steps: Int[Array, ""]
    attempts: Int[Array, ""]
    evaluations: Int[Array, ""]
    rodas_left: Int[Array, ""]
    trouble: Int[Array, ""]
    still: Array
    stuck: Array


class ExponentialIntegrator(eqx.Module):
    """How to step; `kinked` if the activation has kinks."""

    tolerance: float = eqx.field(static=True)
    kinked: bool = eqx.field(static=True)

    def methods(self, problem: GramProblem) -> tuple[AbstractStep, ...]:
        """The one method of this problem; or exponentials, and the whole Hessian where they
        fail.
        """
        if isinstance(problem.operator, SlidingJacobian):
            return (Filippov(),)
        if self.kinked or not has_spectrum(problem):
            return (CommutatorFreeAny(),)
        return (CommutatorFree(), Rodas()) if can_use_rodas(problem) else (CommutatorFree(),)

    def has_dense_output(self, problem: GramProblem) -> bool:
        """Whether the path inside a step is known; elsewhere steps have to end where one looks."""
        return all(isinstance(method, AbstractDenseStep) for method in self.methods(problem))

    def init(self, problem: GramProblem, theta: Parameters, time) -> IntegratorState:
        """At rest at `time`, before the first step."""
        start = problem.linearise(theta)
        no, zero, time = jnp.zeros((), bool), jnp.zeros((), int), jnp.asarray(time, float)
        interpolants = tuple(m.empty_interpolant(problem, start) for m in self.methods(problem))
        last = StepResult(start, start.cotangent, start.loss, interpolants, zero)
        # the first step: half of the fastest time (chosen); the controller grows it by 8 at a time
        size = 0.5 / largest_rate(problem, start)
        return IntegratorState(
            time, time, size, start, last, no, zero, zero, zero, zero, zero, no, no
        )

    def restart(self, problem: GramProblem, state: IntegratorState, theta: Parameters, time):
        """`state` back at an earlier `time`, from `theta`, with all that it has counted."""
        start, time, no = problem.linearise(theta), jnp.asarray(time, float), jnp.zeros((), bool)
        last = dataclasses.replace(state.last, end=start, predicted_gradient=start.cotangent)
        return dataclasses.replace(
            state, begin=time, end=time, start=start, last=last, still=no, stuck=no
        )

    def advance(
        self, problem: GramProblem, state: IntegratorState, stop, max_steps: int, exactly
    ) -> IntegratorState:
        """Steps until `stop` is reached (`exactly`) or passed, or nothing moves, or no step is
        good, or `max_steps` were tried.
        """
        rate = largest_rate(problem, state.last.end)
        floor = FLOOR * min(1.0, self.tolerance / 1e-2) / rate if self.kinked else 0.0
        power = 1 / 2 if self.kinked else 1 / 4  # 1 / (order of the method + 1)

        def going(now: IntegratorState):
            left = now.attempts < state.attempts + max_steps
            return (now.end < stop) & left & ~now.still & ~now.stuck

        def attempt(now: IntegratorState) -> IntegratorState:
            here, use_rodas = now.last.end, now.rodas_left > 0
            cut = exactly & (now.size >= stop - now.end)
            h = jnp.where(cut, stop - now.end, now.size)
            new = self._step(problem, here, h, use_rodas)

            # the verdict: finite, descending, and accurate
            defect = norm(new.end.cotangent - new.predicted_gradient)
            allowed = self.tolerance * norm(here.cotangent) + gradient_rounding(problem, here)
            # `allowed` is never 0: the rounding of outputs keeps it up where the residual vanishes
            error = defect / allowed
            highest_loss = jnp.maximum(new.end.loss, new.highest_loss)
            descends = highest_loss <= here.loss + linearisation_rounding(problem, here)
            descends = descends & jnp.isfinite(defect) & jnp.isfinite(highest_loss)
            # a NaN in the defect is no descent, so it is rejected whatever the floor
            accepted = descends & ((error <= 1) | (h <= floor))

            # the next size: by the error, but not below the floor as long as steps descend; a step
            # cut short does not shorten the next
            # error ~ h^(order + 1), so h may change by error^(-1/(order + 1)); 1e-16 for steps
            # without error
            factor = jnp.clip(SAFETY * jnp.maximum(error, 1e-16) ** -power, SHRINK, GROW)
            by_error = jnp.maximum(factor * h, floor)
            size = jnp.where(descends, by_error, 0.5 * h)
            size = jnp.where(accepted & cut, jnp.maximum(size, now.size), size)

            # the next method: too many failures at stiff blocks bring in the whole Hessian, at the
            # size that failed
            blamed = self._blames_blocks(problem, here, h, ~accepted & ~use_rodas)
            eased = jnp.maximum(now.trouble - (accepted & ~use_rodas), 0)
            trouble = jnp.where(blamed, now.trouble + FAILURE, eased)
            switches = blamed & (trouble >= LIMIT)
            size = jnp.where(switches, h, size)

            moved = dataclasses.replace(
                now,
                begin=now.end,
                end=jnp.where(cut, stop, now.end + h),
                start=here,
                last=new,
                rodas=use_rodas,
                steps=now.steps + 1,
                still=is_still(problem, new.end, rate),
            )
            after = jax.tree.map(lambda a, b: jnp.where(accepted, a, b), moved, now)
            # a size that time itself cannot resolve would never arrive
            shortest = jnp.maximum(SHORTEST / rate, 2 * jnp.finfo(h.dtype).eps * after.end)
            hopeless = (now.attempts - state.attempts >= PROBATION) & (
                size * max_steps < HOPELESS * (stop - after.end)
            )
            return dataclasses.replace(
                after,
                size=size,
                attempts=now.attempts + 1,
                evaluations=now.evaluations + new.evaluations,
                rodas_left=jnp.where(switches, RODAS_STEPS, jnp.maximum(now.rodas_left - 1, 0)),
                # just below the limit: after the next steps with the whole Hessian one failure
                # brings it back
                trouble=jnp.minimum(trouble, LIMIT - 1),
                stuck=~(size > shortest) | hopeless,
            )

        start = state.last.end
        ready = dataclasses.replace(
            state,
            still=state.still | is_still(problem, start, rate),
            stuck=state.stuck | ~jnp.isfinite(rate) | ~jnp.isfinite(start.loss),
        )
        return jax.lax.while_loop(going, attempt, ready)

    def interpolate(self, problem: GramProblem, state: IntegratorState, time) -> Parameters:
        """The parameters at a `time` of the last step; those at its end beyond it."""
        if not self.has_dense_output(problem):
            return state.last.end.theta
        # 1 before the first step, where nothing is read but nothing may be divided by 0
        size = jnp.where(state.end > state.begin, state.end - state.begin, 1.0)
        part = jnp.clip(time - state.begin, 0.0, size)

        def by(method, interpolant):
            return lambda: method.interpolate(
                problem, state.start, state.last.end, interpolant, size, part
            )

        inside = [by(*pair) for pair in zip(self.methods(problem), state.last.interpolant)]
        which = jnp.where(time < state.end, 1 + state.rodas.astype(int), 0)
        return jax.lax.switch(which, [lambda: state.last.end.theta, *inside])

    def _step(self, problem: GramProblem, start: Linearisation, size, use_rodas) -> StepResult:
        """By the method whose turn it is; the result has room for the interpolants of all."""
        methods = self.methods(problem)

        def by(index: int):
            def step() -> StepResult:
                result = methods[index](problem, start, size)
                interpolants: list[PyTree] = [
                    result.interpolant if k == index else m.empty_interpolant(problem, start)
                    for k, m in enumerate(methods)
                ]
                return dataclasses.replace(result, interpolant=tuple(interpolants))

            return step

        if len(methods) == 1:
            return by(0)()
        return jax.lax.cond(use_rodas, by(1), by(0))

    def _blames_blocks(self, problem: GramProblem, start: Linearisation, size, failed):
        """Whether a step that failed may have failed for the neurons' own curvature."""
        if len(self.methods(problem)) == 1:
            return jnp.zeros((), bool)
        network = problem.operator
        assert isinstance(network, ShallowJacobian)  # others have one method
        stiff = lambda: size * largest_norm(network, start) > STIFF
        return jax.lax.cond(failed, stiff, lambda: jnp.zeros((), bool))


def can_use_rodas(problem: GramProblem) -> bool:
    """Whether the whole Hessian is known and affordable."""
    network, entries = problem.operator, problem.targets.size
    if not isinstance(network, ShallowJacobian) or not isinstance(problem.loss, SQUARES):
        return False
    size, width = network.features.shape[1], network.mixed.shape[-1]
    # operations a sample pair: width x size for the weighted Gram matrix; 3 width + 60 entries for
    # two plain ones with their decompositions
    cost = width * size / (3 * width + 60 * entries)
    affordable = entries * width * size <= LARGEST_JACOBIAN and cost <= LARGEST_COST
    return problem.action.dense and affordable


def largest_rate(
    problem: GramProblem, start: Linearisation, iterations: int = 6
) -> Float[Array, ""]:
    r"""$\lambda_{\max}(\Theta)\,\lambda_{\max}(H)$, the fastest decay, from below by a few power
    iterations; never 0.
    """
    product = problem.product_map((1.0,), (start,))

    def iterate(_, v):
        new = product(v)
        size = norm(new)
        return jnp.where(size > 0, new / jnp.where(size > 0, size, 1.0), v)

    # twice as much of the one as of the other, so that the first vector is never 0: for one sample
    # they may point against each other
    g, ones = start.cotangent, jnp.ones_like(start.cotangent)
    v = 2 * ones / norm(ones) + g / _positive(norm(g))
    # a few products (chosen): a time scale from below is all that is needed
    v = jax.lax.fori_loop(0, iterations, iterate, v / norm(v))
    return _positive(norm(product(v)) * start.hessian.largest_eigenvalue())


def output_rounding(outputs: Outputs, targets: Outputs) -> Float[Array, ""]:
    """The rounding error of the outputs, as a norm over samples."""
    scale = norm(jnp.abs(outputs) + jnp.abs(targets))
    return NOISE * jnp.finfo(scale.dtype).eps * scale


def loss_rounding(
    outputs: Outputs, targets: Outputs, loss, cotangent: Outputs, largest_eigenvalue
) -> Float[Array, ""]:
    r"""What it makes of the loss: $(|g| + |H|\epsilon)\,\epsilon$ for outputs that are $\epsilon$
    off, and the rounding of the sum itself.
    """
    error = output_rounding(outputs, targets)
    of_outputs = (norm(cotangent) + largest_eigenvalue * error) * error
    return of_outputs + NOISE * jnp.finfo(error.dtype).eps * jnp.abs(loss)


def gradient_rounding(problem: GramProblem, at: Linearisation) -> Float[Array, ""]:
    """Of the output gradient, as a norm over samples."""
    return at.hessian.largest_eigenvalue() * output_rounding(at.outputs, problem.targets)


def parameter_rounding(problem: GramProblem, at: Linearisation) -> Float[Array, ""]:
    r"""The same as the parameters' own roundings make it: $\epsilon|H|\,|J(\theta\circ s)|$ with
    signs $s$ drawn once and for all.

    Where large terms cancel in an output it is far above what the output's size says.
    """
    leaves, structure = jax.tree.flatten(at.theta)
    keys = jax.random.split(jax.random.key(0), len(leaves))
    signed = [
        leaf * jax.random.rademacher(key, leaf.shape, leaf.dtype) for key, leaf in zip(keys, leaves)
    ]
    change = problem.operator.jvp(at.jacobian, jax.tree.unflatten(structure, signed))
    eps = jnp.finfo(change.dtype).eps
    return STORED * eps * at.hessian.largest_eigenvalue() * norm(change)


def linearisation_rounding(problem: GramProblem, at: Linearisation) -> Float[Array, ""]:
    """Of the loss there."""
    largest = at.hessian.largest_eigenvalue()
    return loss_rounding(at.outputs, problem.targets, at.loss, at.cotangent, largest)


def is_still(problem: GramProblem, at: Linearisation, rate) -> Array:
    r"""The gradient vanished: the outputs fit, or $g^\top\Theta g$, the speed of the loss, does, to
    rounding.
    """
    g = at.cotangent
    speed = jnp.vdot(g, problem.product((1.0,), (at,), g))
    # g^T Theta g = |sqrt(c) J^T g|^2, whose rounding is eps |J| |g|; |J|^2 = lambda_max(Theta) =
    # rate / lambda_max(H)
    smallest = (NOISE * jnp.finfo(g.dtype).eps * norm(g)) ** 2
    size, resolved = norm(g), gradient_rounding(problem, at)
    fits = jax.lax.cond(  # the parameters' roundings cost a product and matter near the end alone
        size <= NEARLY * resolved,
        lambda: size <= resolved + parameter_rounding(problem, at),
        lambda: jnp.zeros((), bool),
    )
    return fits | (speed <= smallest * rate / at.hessian.largest_eigenvalue())


def _positive(x):
    # the root of the smallest number: neither its square nor its inverse leaves the range
    return jnp.where(x > 0, x, jnp.finfo(x.dtype).tiny ** 0.5)


def norm(v):
    """Over all entries."""
    return jnp.sqrt(jnp.sum(v**2))
