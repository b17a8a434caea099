r"""A loss on fixed training points as the linear system of the Gram-matrix exponential flow.

Along gradient flow the parameters and the output gradient $g$ obey a linear system whose matrix
moves only as fast as features do,
$$\dot\theta = -cJ(\theta)^\top g,\qquad \dot g = -H\,\Theta(\theta)\,g,\qquad \Theta = JcJ^\top .$$
Frozen for a time $h$, it is solved by $\theta - cJ^\top h\varphi_1(-hH\Theta)g$ and
$e^{-hH\Theta}g$, for any $h$: stiffness never limits the step. `commutator_free` and `filippov` are
made of such exponentials.

$H$ is the output Hessian of the loss. For squared losses $H = \kappa I$ and a step with frozen
$\Theta$ is exact. For any other convex loss $H$ is block-diagonal over samples and frozen over a
step (the local quadratic model); its symmetric root $B$ makes $B\Theta B$ symmetric.
"""

import abc
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..._core.trees import Parameters
from ...data.objective import Loss
from ..losses import AbstractLoss, HalfMeanSquares, HalfSumSquares, MeanSquares
from .jacobian import AbstractJacobian
from .matrix_functions import AbstractAction, phi1, phi2, phi3

Outputs = Float[Array, " sample *output"]

SQUARES = (HalfSumSquares, MeanSquares, HalfMeanSquares)
PHI = (lambda x: jnp.exp(-x), phi1, phi2, phi3)


class AbstractOutputHessian(eqx.Module):
    """$H$ at given outputs."""

    @abc.abstractmethod
    def largest_eigenvalue(self) -> Float[Array, ""]:
        """The largest eigenvalue of $H$."""

    @abc.abstractmethod
    def apply(self, v: Float[Array, " sample *output"]) -> Float[Array, " sample *output"]:
        r"""$Hv$."""


class UniformHessian(AbstractOutputHessian):
    r"""$H = \kappa I$."""

    kappa: Float[Array, ""]

    def largest_eigenvalue(self):
        return self.kappa

    def apply(self, v):
        return self.kappa * v


class BlockHessian(AbstractOutputHessian):
    r"""$H = B^2$, one symmetric block $B$ a sample."""

    root: Float[Array, "sample output output"]

    def largest_eigenvalue(self):
        # |B|_F^2 = tr H of a sample: exact for one output, and from above (at most `output` times)
        # for several
        return jnp.max(jnp.sum(self.root**2, axis=(1, 2)))

    def apply(self, v):
        return self.sqrt(self.sqrt(v))

    def sqrt(self, v: Float[Array, " sample *output"]) -> Float[Array, " sample *output"]:
        r"""$Bv$."""
        flat = v.reshape(self.root.shape[:2])
        return jnp.einsum("nkl,nl->nk", self.root, flat).reshape(v.shape)

    def congruence(self, matrix: Float[Array, "entry entry"]) -> Float[Array, "entry entry"]:
        r"""$B\Theta B$."""
        n, k, _ = self.root.shape
        four = matrix.reshape(n, k, n, k)
        return jnp.einsum("iab,ibjc,jcd->iajd", self.root, four, self.root).reshape(matrix.shape)


def output_hessian(loss: Loss, outputs, targets) -> UniformHessian | BlockHessian:
    """$H$ of `loss` at `outputs`; negative eigenvalues (losses that are not convex) count as 0."""
    if isinstance(loss, SQUARES):
        one, zero = jnp.ones_like(outputs), jnp.zeros_like(outputs)
        # the gradient is kappa (f - y): at f = 1, y = 0 it is kappa in every entry
        return UniformHessian(loss.value_and_gradient(one, zero)[1].ravel()[0])
    count = 1 if outputs.ndim == 1 else outputs.shape[1]

    def gradient(u):
        return loss.value_and_gradient(u, targets)[1]

    def column(k):  # samples do not mix, so one direction serves every sample's block at once
        direction = jnp.zeros((outputs.shape[0], count), outputs.dtype).at[:, k].set(1.0)
        tangent = jax.jvp(gradient, (outputs,), (direction.reshape(outputs.shape),))[1]
        return tangent.reshape(-1, count)

    blocks = jnp.stack([column(k) for k in range(count)], axis=2)
    values, vectors = jnp.linalg.eigh((blocks + blocks.swapaxes(1, 2)) / 2)
    # the symmetric root, not a triangular one: B Theta B stays symmetric, and B may be singular
    roots = jnp.sqrt(jnp.maximum(values, 0.0))
    return BlockHessian(jnp.einsum("nak,nk,nbk->nab", vectors, roots, vectors))


class Linearisation(eqx.Module):
    """Parameters with all that the flow needs there: outputs, loss, output gradient $g$, output
    Hessian $H$, $J$, and $\\Theta$ where it is formed.
    """

    theta: Parameters
    outputs: Outputs
    loss: Float[Array, ""]
    cotangent: Outputs
    hessian: UniformHessian | BlockHessian
    jacobian: PyTree
    gram: Float[Array, "entry entry"] | None


class GramProblem(eqx.Module):
    """A loss on fixed training points, which can be linearised anywhere."""

    operator: AbstractJacobian
    targets: Outputs
    loss: AbstractLoss
    action: AbstractAction

    def linearise(self, theta: Parameters) -> Linearisation:
        outputs, jacobian = self.operator.linearise(theta)
        gram = self.operator.free_gram(jacobian) if self.action.dense else None
        return self.linearisation(theta, outputs, jacobian, gram)

    def linearisation(
        self, theta: Parameters, outputs: Outputs, jacobian: PyTree, gram=None
    ) -> Linearisation:
        """The same where outputs and Jacobian are known, and perhaps the Gram matrix."""
        loss, cotangent = self.loss.value_and_gradient(outputs, self.targets)
        hessian = output_hessian(self.loss, outputs, self.targets)
        if gram is None and self.action.dense:
            gram = self.operator.gram(jacobian)
        return Linearisation(theta, outputs, loss, cotangent, hessian, jacobian, gram)

    def product(
        self, weights: Sequence[float], linearisations: Sequence[Linearisation], v: Outputs
    ) -> Outputs:
        r"""$\sum_i a_i\Theta_i v$."""
        return self.product_map(weights, linearisations)(v)

    def product_map(self, weights: Sequence[float], linearisations: Sequence[Linearisation]):
        r"""$v \mapsto \sum_i a_i\Theta_i v$."""
        if self.action.dense:
            matrix = _combine(weights, linearisations)
            return lambda v: (matrix @ v.ravel()).reshape(v.shape)
        maps = [self.operator.gram_map(linearisation.jacobian) for linearisation in linearisations]
        return lambda v: sum((a * f(v) for a, f in zip(weights, maps)), start=jnp.zeros_like(v))


def exponential(
    problem: GramProblem,
    weights: Sequence[float],
    linearisations: Sequence[Linearisation],
    cotangent: Outputs,
    size,
    forcing: Outputs | None = None,
) -> tuple[Outputs, Outputs]:
    r"""$h\varphi_1(-hH\sum a_i\Theta_i)\,g$, the time integral of the cotangent, and $g$ after the
    step.

    With a `forcing` $f$ those of $\dot g = -H\sum a_i\Theta_i\,g + f$.
    """
    return exponentials(problem, weights, linearisations, cotangent, [size], forcing)[0]


def exponentials(
    problem: GramProblem,
    weights: Sequence[float],
    linearisations: Sequence[Linearisation],
    cotangent: Outputs,
    sizes: Sequence,
    forcing: Outputs | None = None,
) -> list[tuple[Outputs, Outputs]]:
    """The same after steps of several sizes, from one decomposition."""
    hessian = linearisations[-1].hessian
    act = problem.action(_operator(problem, weights, linearisations))

    def phis(v: Outputs, k: int) -> list[tuple[Outputs, Outputs]]:
        r"""$\varphi_k(-hH\sum a_i\Theta_i)\,v$ and $\varphi_{k+1}$ of the same, for every size
        $h$.
        """
        if isinstance(hessian, UniformHessian):
            start, scale, used = v, hessian.kappa, PHI[k : k + 2]
        else:  # phi_k(-hHM)v = v/k! - hB phi_{k+1}(-hBMB) BMv: no inverse of B is needed
            start, scale, used = (
                hessian.sqrt(problem.product(weights, linearisations, v)),
                1.0,
                PHI[k + 1 : k + 3],
            )
        functions = [(lambda x, f=f, h=h: f(scale * h * x)) for h in sizes for f in used]
        vectors = [w.reshape(v.shape) for w in act(start.ravel(), functions)]
        both = list(zip(vectors[::2], vectors[1::2]))
        if isinstance(hessian, UniformHessian):
            return both
        root = hessian.sqrt
        part = lambda order, h, w: v / math.factorial(order) - h * root(w)
        return [(part(k, h, a), part(k + 1, h, b)) for h, (a, b) in zip(sizes, both)]

    # phi_0 = exp gives g after the step, h phi_1 its time integral
    free = [(h * mean, after) for h, (after, mean) in zip(sizes, phis(cotangent, 0))]
    if forcing is None:
        return free
    return [
        # variation of constants with a constant f: h phi_1 f after the step, h^2 phi_2 f in the
        # integral
        (integral + h**2 * twice, after + h * once)
        for h, (integral, after), (once, twice) in zip(sizes, free, phis(forcing, 1))
    ]


def _operator(problem: GramProblem, weights, linearisations):
    r"""$M$, or $BMB$ where the curvature is not uniform: a matrix or the map."""
    hessian = linearisations[-1].hessian
    uniform = isinstance(hessian, UniformHessian)
    if problem.action.dense:
        return (
            _combine(weights, linearisations)
            if uniform
            else hessian.congruence(_combine(weights, linearisations))
        )

    product = problem.product_map(weights, linearisations)

    def apply(v):
        v = v.reshape(linearisations[0].cotangent.shape)
        return (product(v) if uniform else hessian.sqrt(product(hessian.sqrt(v)))).ravel()

    return apply


def _combine(weights, linearisations):
    # weights may be negative (-1/12): the sum may have eigenvalues below 0, which `Dense` cuts off
    terms = (a * lin.gram for a, lin in zip(weights, linearisations))
    return sum(terms, start=jnp.zeros(()))


def move(problem, theta, weights, linearisations, integral) -> Parameters:
    r"""$\theta - \sum_i a_i\,cJ_i^\top\bar g$."""
    for a, linearisation in zip(weights, linearisations):
        product = problem.operator.vjp(linearisation.jacobian, a * integral)
        theta = {name: theta[name] - product[name] for name in theta}
    return theta
