r"""What is carried through the layers of an infinitely wide network: covariances of one channel at
two inputs.

For inputs $x_i$ (left) and $x'_k$ (right) the state holds $\Sigma(x_i, x'_k)$ (`cross`), the
tangent kernel $\Theta(x_i, x'_k)$ (`tangent`, None while nothing below is trained) and the
covariances of each input with itself, which the activations need. Positions lead and samples trail,
so that a window slides over whole blocks of samples: `cross` is (H, W, ..., left, right), or (H,
H', W, W', ..., left, right) where a later pooling layer asks for pairs of different positions;
`left` and `right` likewise, with one axis of samples.
"""

import dataclasses
import math
from dataclasses import dataclass

import jax.numpy as jnp

from .windows import position_axes

SUMMED_CHANNELS = 128  # channels of one slice of a sum of products
MOST_SLICES = 16  # each is a product of its own in the compiled program


@dataclass(frozen=True)
class Covariances:
    """The state; `matched` means that left and right are the same samples one by one, so `cross`
    has one sample axis.
    """

    left: jnp.ndarray | None
    right: jnp.ndarray | None
    cross: jnp.ndarray
    tangent: jnp.ndarray | None
    shape: tuple[int, ...]  # of one sample in the finite network: (*position, channel)
    pairs: bool
    gaussian: bool  # centred Gaussian channels: true after a dense layer or convolution
    matched: bool

    @property
    def spatial(self) -> int:
        return len(self.shape) - 1

    def replace(self, **changes) -> "Covariances":
        return dataclasses.replace(self, **changes)

    def linear(self, function, tangent=True) -> "Covariances":
        """The same linear map of every array."""
        rest = self.tangent if not tangent or self.tangent is None else function(self.tangent)
        left = None if self.left is None else function(self.left)
        right = None if self.right is None else function(self.right)
        return self.replace(left=left, right=right, cross=function(self.cross), tangent=rest)

    def variances(self):
        """The variances at the left and the right member of each entry of `cross`, ready to
        broadcast with it.
        """
        if self.matched:
            own = position_variances(self.cross, self.spatial, self.pairs)
            return _spread(own, self.spatial, self.pairs)
        assert self.left is not None  # None only where samples are matched
        assert self.right is not None
        left = position_variances(self.left, self.spatial, self.pairs)
        right = position_variances(self.right, self.spatial, self.pairs)
        p = _spread(left, self.spatial, self.pairs)[0][..., :, None]
        r = _spread(right, self.spatial, self.pairs)[1][..., None, :]
        return p, r

    def own_variances(self, own):
        """The same for `left` or `right` itself."""
        return _spread(position_variances(own, self.spatial, self.pairs), self.spatial, self.pairs)

    def without_pairs(self) -> "Covariances":
        """Equal positions only."""
        if not self.pairs:
            return self
        state = self.linear(lambda x: position_variances(x, self.spatial, True))
        return state.replace(pairs=False)


def position_variances(x, spatial: int, pairs: bool):
    """The diagonal (h, h, w, w, ...) of pairs of positions, as (h, w, ...)."""
    for k in range(spatial if pairs else 0):
        # the k-th pair of axes now stands at (k, k + 1), as the earlier ones have become one each
        x = jnp.moveaxis(jnp.diagonal(x, axis1=k, axis2=k + 1), -1, k)
    return x


def _spread(own, spatial: int, pairs: bool):
    """(h, w, ...) as (h, 1, w, 1, ...) and (1, h, 1, w, ...)."""
    if not pairs:
        return own, own
    first, second = own, own
    for k in range(spatial):
        first = jnp.expand_dims(first, 2 * k + 1)
        second = jnp.expand_dims(second, 2 * k)
    return first, second


def of_inputs(x, x2, pairs: bool, *, matched: bool = False) -> Covariances:
    r"""$\Sigma^0 = x \cdot x' / c$ over the $c$ channels, for (sample, *position, channel)
    arrays.
    """
    shape, channels = x.shape[1:], x.shape[-1]
    spatial = len(shape) - 1
    pairs = pairs and spatial > 0
    own = lambda a: _own_products(a, pairs) / channels
    if matched:
        cross, left, right = own(x), None, None
    else:
        cross = _cross_products(x, x2, pairs) / channels
        left, right = own(x), own(x2)
    return Covariances(left, right, cross, None, shape, pairs, False, matched)


def _letters(spatial: int, pairs: bool) -> tuple[str, str, str]:
    first = "abcdef"[:spatial]
    second = "ghijkl"[:spatial] if pairs else first
    out = "".join(a + b for a, b in zip(first, second)) if pairs else first
    return first, second, out


def _own_products(x, pairs: bool):
    first, second, out = _letters(x.ndim - 2, pairs)
    return jnp.einsum(f"n{first}z,n{second}z->{out}n", x, x)


def _cross_products(x, x2, pairs: bool):
    """Products summed over slices of channels and then over the slices.

    A matrix product adds up one term after the other: where many are equal, like an image's
    background, its rounding grows with their number (52 epsilon for 784 pixels of MNIST), and two
    equal inputs would come out at an angle of 1e-8. Slices of 128 channels keep it below what
    `angle_of_pair` takes for zero.
    """
    first, second, out = _letters(x.ndim - 2, pairs)
    channels = x.shape[-1]
    # at least 128 channels a slice, at most 16 slices
    size = max(SUMMED_CHANNELS, -(-channels // MOST_SLICES))
    total = 0.0
    for a in range(0, channels, size):
        part = slice(a, a + size)
        total = total + jnp.einsum(f"n{first}z,m{second}z->{out}nm", x[..., part], x2[..., part])
    return total


def samples_first(x, spatial: int, batch: int):
    """(position..., sample...) to (sample..., position...)."""
    return jnp.moveaxis(x, tuple(range(spatial)), tuple(range(batch, batch + spatial)))


def mean_over_positions(x, spatial: int, pairs: bool):
    axes = tuple(a for k in range(spatial) for a in position_axes(k, pairs))
    return x.mean(axes) if axes else x


def entries(shape: tuple[int, ...], pairs: bool) -> int:
    """Numbers that the state holds for one pair of samples."""
    positions = math.prod(shape[:-1])
    return positions**2 if pairs else positions
