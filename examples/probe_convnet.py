"""Is a small convolutional network lazy? Train it twice, with the output multiplied by 1 and by
100, and probe.

Multiplying the output by a large factor (and dividing the loss by its square) makes any network
lazy: it then needs to move very little.

Run:  python examples/probe_convnet.py [FIGURE.png]      Takes: under a minute on two cores
"""

import pathlib
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import wideflow as wf


class ConvNet(eqx.Module):
    """Two convolutions, mean over pixels, a linear output; `factor` multiplies the output."""

    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d
    last: eqx.nn.Linear
    factor: float

    def __init__(self, key, channels: int = 16, factor: float = 1.0):
        a, b, c = jax.random.split(key, 3)
        self.first = eqx.nn.Conv2d(1, channels, 3, padding=1, key=a)
        self.second = eqx.nn.Conv2d(channels, channels, 3, padding=1, key=b)
        self.last = eqx.nn.Linear(channels, 1, key=c)
        self.factor = factor

    def hidden(self, image):
        return jnp.mean(jax.nn.relu(self.second(jax.nn.relu(self.first(image)))), axis=(1, 2))

    def __call__(self, image):
        return self.factor * self.last(self.hidden(image))[0]


def stripes(key, samples: int, size: int = 12):
    """Noisy images with stripes: horizontal ones are +1, vertical ones -1."""
    sign, noise = jax.random.split(key)
    labels = jax.random.rademacher(sign, (samples,), dtype=float)
    wave = jnp.sin(jnp.arange(size) * 2.0)
    across = jnp.broadcast_to(wave[:, None], (size, size))
    images = jnp.where(labels[:, None, None] > 0, across, across.T)
    return (images + 0.5 * jax.random.normal(noise, images.shape))[:, None], labels


def train(net, images, labels, steps: int = 300, rate: float = 0.02):
    """Full-batch descent with momentum on half the mean square over the factor squared."""
    start = jax.vmap(net)(
        images
    )  # trained on the difference to the start, so that the start's output costs nothing
    moving, static = eqx.partition(net, eqx.is_inexact_array)
    optimiser = optax.sgd(rate, momentum=0.9)

    def loss(moving):
        outputs = jax.vmap(eqx.combine(moving, static))(images) - start
        return jnp.mean((outputs - labels) ** 2) / (2 * net.factor**2)

    @jax.jit
    def step(moving, state):
        value, gradient = jax.value_and_grad(loss)(moving)
        update, state = optimiser.update(gradient, state)
        return optax.apply_updates(moving, update), state, value

    state = optimiser.init(moving)
    for _ in range(steps):
        moving, state, value = step(moving, state)
    return eqx.combine(moving, static), float(value) * net.factor**2


def main() -> dict:
    images, labels = stripes(jax.random.key(0), 64)
    found = {}
    for factor in (1.0, 100.0):
        before = ConvNet(jax.random.key(1), factor=factor)
        after, loss = train(before, images, labels)
        found[factor] = wf.probe(
            lambda net, x: net(x), before, after, images[:32], features=lambda net, x: net.hidden(x)
        )
        print(
            f"\noutput multiplied by {factor:g}, half mean of squares after training "
            f"{loss:.3g}\n{found[factor]}"
        )
    return found


if __name__ == "__main__":
    probes = main()
    if len(sys.argv) > 1:
        from wideflow.report.static import save_figure

        print(save_figure(probes[1.0].figure(), pathlib.Path(sys.argv[1]).with_suffix("")))
