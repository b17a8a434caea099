import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import wideflow as wf
from wideflow.papers.caron2023.observables.kinks import MaskAveraging, kernel_velocity, sliding

DATA = wf.data.sphere_sines(jax.random.key(1), samples=6, features=4, noise=0.1)


def network(activation="relu", width=30, scaling=None):
    return wf.Shallow.init(
        jax.random.key(2),
        features=4,
        width=width,
        scaling=scaling or wf.scalings.Zipf(0.5, 0.7),
        activation=activation,
    )


@pytest.mark.parametrize("activation", ["tanh", "softplus", "sin"])
def test_kernel_velocity_is_the_central_difference_along_the_flow(activation):
    net = network(activation)

    step = 1e-5
    move = -jax.grad(lambda w: loss_of(net, w))(net.weights)
    grams = [
        wf.observables.tangent_gram(
            wf.Shallow((net.weights + sign * step * move).T, net.output, net.scaling, activation),
            DATA.inputs,
        )
        for sign in (1, -1)
    ]
    assert_allclose(
        kernel_velocity(net, DATA.inputs, DATA.targets),
        (grams[0] - grams[1]) / (2 * step),
        atol=1e-9,
    )


def loss_of(net, weights):
    z = jnp.asarray(DATA.inputs) @ weights / 2.0
    return jnp.sum((net.activation(z) @ (net.scales * net.output) - DATA.targets) ** 2) / 2


def test_flips_gradient_change_and_rate_against_their_definitions():
    net = network()
    run = wf.train(
        net,
        DATA,
        wf.GradientDescent(1.0),
        steps=40,
        every=40,
        record=[
            wf.observables.Flips(),
            wf.observables.GradientChange(),
            wf.observables.DecayRate(),
            wf.observables.SmallestPreactivation(),
        ],
    )
    x = np.asarray(DATA.inputs) / 2.0
    before, after = (x @ np.asarray(m.weights) > 0 for m in (net, run.model))
    assert float(run.table["flips"][-1]) == np.sum(before != after) > 0
    # ||grad f(W) - grad f(W_0)||_F^2 with the Jacobian written out: rows sqrt(lambda_j) a_j sigma'
    # x_i / sqrt(d)
    jacobians = [
        (
            np.asarray(net.scales * net.output)[None, :, None] * mask[:, :, None] * x[:, None, :]
        ).reshape(6, -1)
        for mask in (before, after)
    ]
    assert_allclose(
        run.table["gradient_change"][-1], np.sum((jacobians[1] - jacobians[0]) ** 2), rtol=1e-12
    )
    residual = np.asarray(run.model.outputs(DATA.inputs)) - np.asarray(DATA.targets)
    gram = jacobians[1] @ jacobians[1].T
    assert_allclose(
        run.table["decay_rate"][-1],
        2 * residual @ gram @ residual / (residual @ residual),
        rtol=1e-11,
    )
    assert_allclose(
        run.table["smallest_preactivation"][-1],
        np.min(np.abs(x @ np.asarray(run.model.weights))),
        rtol=1e-12,
    )


def test_mask_averaging_leaves_the_path_alone_and_averages_masks():
    net, dynamics = network(), wf.GradientDescent(2.0)
    plain = wf.train(net, DATA, dynamics, steps=7)
    averaged = wf.train(net, DATA, MaskAveraging(dynamics), steps=7)
    assert_allclose(averaged.model.weights, plain.model.weights, rtol=1e-15)
    masks, model = [], net
    for _ in range(7):
        masks.append(np.asarray(model.preactivations(DATA.inputs)) > 0)
        model = wf.train(model, DATA, dynamics, steps=1).model
    assert_allclose(averaged.state.mean, np.mean(masks, axis=0), rtol=1e-14)


def test_without_sticking_both_masks_give_one_rate():
    # Lazy window right at the end of a converged smooth phase: nothing flips, so the two matrices
    # are equal.
    net = network(width=400, scaling=wf.scalings.NTK())
    window = sliding(net, DATA, wf.GradientDescent(1e-3), steps=20)
    assert window.stuck == 0
    assert window.hard == pytest.approx(window.averaged, rel=1e-9)
    assert window.observed >= window.averaged * (1 - 1e-6)
    assert window.pairs == 6 * 400


def test_a_stuck_pair_halves_its_share_of_the_diagonal():
    # One input, one node of weight 1, target 0 and pre-activation straddling zero cannot be built
    # with ReLU outputs >= 0; instead check Theta((1-s) m_0 + s m_1) = (1-s) Theta_0 + s Theta_1 - s
    # (1-s) lambda |x|^2/d e e^T directly.
    x, s, weights = np.asarray(DATA.inputs) / 2.0, 0.3, np.asarray(network().node_weights)
    low = (np.random.default_rng(0).random((6, 30)) > 0.5).astype(float)
    low[2, 5] = 0.0
    high = low.copy()
    high[2, 5] = 1.0
    gram = lambda mask: (x @ x.T) * ((mask * weights) @ mask.T)
    mixed = gram((1 - s) * low + s * high)
    correction = np.zeros((6, 6))
    correction[2, 2] = s * (1 - s) * weights[5] * x[2] @ x[2]
    assert_allclose(mixed, (1 - s) * gram(low) + s * gram(high) - correction, atol=1e-15)


def test_kinked_networks_have_no_kernel_velocity():
    with pytest.raises(ValueError, match="smooth activation"):
        kernel_velocity(network(), DATA.inputs, DATA.targets)


@pytest.mark.parametrize("options", [{"output_scale": 3.0}, {"outputs": 2}])
def test_gradient_change_counts_the_output_weights(options):
    start = wf.Shallow.init(3, features=4, width=9, activation="tanh", **options)
    targets = np.zeros((6, *start.output.shape[:-1]))
    run = wf.train(
        start,
        wf.Dataset(DATA.inputs, targets),
        wf.GradientDescent(0.5),
        steps=3,
        record=[wf.observables.GradientChange()],
    )

    def jacobian(net):
        outputs = lambda w: wf.Shallow(w.T, net.output, net.scaling, net.activation).outputs(
            DATA.inputs
        )
        return jax.jacobian(outputs)(net.weights)

    change = np.sum(np.asarray(jacobian(run.model) - jacobian(start)) ** 2)
    assert_allclose(run.table["gradient_change"][-1], change, rtol=1e-12)


@pytest.mark.parametrize(
    "observable",
    [
        wf.observables.DecayRate(),
        wf.observables.KernelSpeed(),
        wf.observables.LossSlope(),
        wf.observables.PreactivationSpeed(),
        wf.observables.WeightedResidual(),
    ],
)
def test_observables_of_one_output_say_so(observable):
    # as many samples as outputs, where the shapes alone would let some of them pass
    net = wf.Shallow.init(3, features=4, width=9, activation="tanh", outputs=6)
    data = wf.Dataset(DATA.inputs, np.eye(6))
    with pytest.raises(ValueError, match="a network of one output, got 6"):
        wf.train(net, data, wf.GradientDescent(0.5), steps=1, record=[observable])
