r"""Leaving the tangent kernel: the first term of the field theory in the richness, for one hidden layer, without Monte Carlo.

With one hidden layer the neurons obey $\dot h_\mu = \gamma_0\sum_a\Delta_a\Phi^0_{\mu a}\phi'(h_a)z$ and $\dot z = \gamma_0\sum_a\Delta_a\phi(h_a)$ from $h(0) = u \sim N(0, \Phi^0)$ and
$z(0) = r \sim N(0, 1)$. Let $\Delta$ be the errors of the flow on the frozen kernel $\Theta_0$ and
$$S_a(t) = \int_0^t\Delta_a, \qquad P_{ab}(t) = \int_0^t\Delta_a(s)\,S_b(s)\,ds.$$
Then $h = u + \gamma_0h_1 + \gamma_0^2h_2 + \ldots$, $z = r + \gamma_0z_1 + \gamma_0^2z_2 + \ldots$ with ($\phi_a = \phi(u_a)$)
$$h_{1,\mu} = r\sum_a\Phi^0_{\mu a}S_a\phi'_a, \qquad z_1 = \sum_aS_a\phi_a, \qquad z_2 = r\sum_{ab}P_{ab}\Phi^0_{ab}\phi'_a\phi'_b,$$
$$h_{2,\mu} = \sum_{ab}P_{ab}\Phi^0_{\mu a}\big(r^2\Phi^0_{ab}\phi''_a\phi'_b + \phi'_a\phi_b\big).$$
Terms of odd order are odd in $r$ and vanish, so $\Theta_{\mu\nu} = \langle\phi(h_\mu)\phi(h_\nu)\rangle + \Phi^0_{\mu\nu}\langle z^2\phi'(h_\mu)\phi'(h_\nu)\rangle = \Theta_0 + \gamma_0^2\Theta_2 + O(\gamma_0^4)$, and
the outputs $f_0 + \gamma_0^2f_2$ follow $\dot f_0 = \Theta_0\Delta$, $\dot f_2 = \Theta_2\Delta - \Theta_0f_2$ under half the sum of squares. The means over $u$ go by the lattice rule
where $\Phi^0$ has rank at most four, else over points of a Sobol sequence; `error` states what that leaves.
"""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._core.activations import Activation, activation as as_activation
from ..._core.arrays import real_array
from ..._core.gaussian_lattice import MOST_DIMENSIONS, lattice_rule
from ..._core.precision import AbstractResult, double
from .arguments import checked_data

ORDER = 24  # nodes a dimension of four; a quarter more state the error
POINTS = 2**14  # of the Sobol sequence in more dimensions, twice
RANK = 1e-12  # eigenvalues below this share of the largest count as none


class LazyExpansion(AbstractResult):
    r"""Kernel and outputs to first order in $\gamma_0^2$.

    Attributes:
        times: of the flow.
        kernel: $\Theta_0$, (point, point).
        kernel_coefficients: $\Theta_2$, (time, point, point).
        outputs: $f_0$, (time, point).
        output_coefficients: $f_2$, (time, point).
        error: largest difference of $\Theta_2$ between two quadrature rules.
    """

    times: jax.Array
    kernel: jax.Array
    kernel_coefficients: jax.Array
    outputs: jax.Array
    output_coefficients: jax.Array
    error: float

    def kernels_at(self, richness: float) -> jax.Array:
        r"""$\Theta_0 + \gamma_0^2\Theta_2$, (time, point, point)."""
        return self.kernel + richness**2 * self.kernel_coefficients

    def outputs_at(self, richness: float) -> jax.Array:
        r"""$f_0 + \gamma_0^2f_2$, (time, point)."""
        return self.outputs + richness**2 * self.output_coefficients


@double
def lazy_expansion(inputs, targets, times, activation="tanh") -> LazyExpansion:
    r"""The flow of a wide network with one hidden layer to first order in $\gamma_0^2$, half the sum of squares.

    Args:
        inputs, targets: $x$, (sample, feature), and $y$, (sample,).
        times: from 0 on, rising.
        activation: $\phi$, three times differentiable.

    >>> expansion = lazy_expansion([[1.0, 0.0], [0.5, 1.0]], [1.0, -1.0], [1.0])
    >>> bool(expansion.kernel_coefficients[0, 0, 0] > 0)  # features grow
    True
    """
    act = as_activation(activation)
    if act.kinks:
        raise ValueError(
            f"`activation` must be smooth, got {act!r}: the expansion takes three derivatives. Use `field_theory` for kinks."
        )
    gram, targets = checked_data(inputs, targets, None)
    ts = real_array("times", times, "(time,)").astype(float)
    if ts[0] < 0 or not bool(jnp.all(jnp.diff(ts) > 0)):
        raise ValueError("`times` must rise from 0 or later, each one larger than the one before.")
    coarse, fine = rules(gram)
    kernel, outputs, kernels, corrections = _expand(act, gram, targets, ts, *fine)
    other = _expand(act, gram, targets, ts, *coarse)[2]
    error = float(jnp.max(jnp.abs(kernels - other)))
    return LazyExpansion(ts, kernel, kernels, outputs, corrections, error)


def rules(gram):
    """Two sets of points $u$ (point, sample) and weights for means over $N(0, \\Phi^0)$."""
    values, vectors = np.linalg.eigh(np.asarray(gram))
    live = values > RANK * max(values[-1], 1e-300)
    root = vectors[:, live] * np.sqrt(values[live])
    rank = root.shape[1]
    if 0 < rank <= MOST_DIMENSIONS:
        return [lattice_rule(jnp.asarray(root), order) for order in (ORDER, round(1.25 * ORDER))]
    from scipy.stats import norm, qmc  # slow to import, and only many dimensions need it

    sequences = [qmc.Sobol(rank, rng=np.random.default_rng(seed)) for seed in range(2)]
    points = [norm.ppf(sequence.random(POINTS)) @ root.T for sequence in sequences]
    weights = jnp.full(POINTS, 1 / POINTS)
    return [(jnp.asarray(u), weights) for u in points]


@eqx.filter_jit
def _expand(act: Activation, gram, targets, ts, u, weights):
    value, slope = act.value(u), act.slope(u)
    mean = lambda left, right: (left * weights[:, None]).T @ right
    kernel = mean(value, value) + gram * mean(slope, slope)

    def field(t, state, args):
        errors, integral, double_integral, correction = state
        change = kernel_change(act, gram, u, weights, integral, double_integral)
        return (
            -kernel @ errors, errors, jnp.outer(errors, integral), change @ errors - kernel @ correction,
        )  # fmt: skip

    n = len(targets)
    start = targets, jnp.zeros(n), jnp.zeros((n, n)), jnp.zeros(n)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, ts[-1], None, start,
        saveat=diffrax.SaveAt(ts=ts), stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10),
    )  # fmt: skip
    assert solution.ys is not None  # `saveat` asks for them
    errors, integrals, double_integrals, corrections = solution.ys
    kernels = jax.lax.map(
        lambda both: kernel_change(act, gram, u, weights, *both), (integrals, double_integrals)
    )
    return kernel, targets - errors, kernels, corrections


def kernel_change(act: Activation, gram, u, weights, S, P):
    r"""$\Theta_2$ from $S$ (point,) and $P$ (point, point); see the head of this file.

    Each line is one product of the expansions, averaged over $r$ ($\langle r^2\rangle = 1$, $\langle r^4\rangle = 3$) by hand and over $u$ by the rule.
    """
    third = jax.vmap(jax.vmap(jax.grad(lambda z: act.bend(z))))
    f, f1, f2, f3 = act.value(u), act.slope(u), act.bend(u), third(u)
    one = (f1 * S) @ gram  # h_1 / r, (sample of u, point)
    z1 = f @ S
    z2 = jnp.einsum("ab,ia,ib->i", P * gram, f1, f1)  # z_2 / r
    curved = (f2 * (f1 @ (P * gram).T)) @ gram  # the share of r^2 in h_2
    plain = (f1 * (f @ P.T)) @ gram  # the rest of h_2
    mean = lambda left, right: (left * weights[:, None]).T @ right
    both = lambda matrix: matrix + matrix.T
    features = mean(f1 * one, f1 * one) + both(mean(0.5 * f2 * one**2 + f1 * (curved + plain), f))
    gradients = mean((z1**2 + 2 * z2)[:, None] * f1, f1)
    gradients += both(mean(2 * z1[:, None] * f2 * one, f1))
    gradients += 3 * mean(f2 * one, f2 * one)
    gradients += both(mean(1.5 * f3 * one**2 + f2 * (3 * curved + plain), f1))
    return features + gram * gradients
