"""Checkpoints of a training: where they are kept (an interface), under which key, and how trees
become arrays.
"""

import abc
import hashlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .identity import UnstableIdentityError, identify

Arrays = dict[str, np.ndarray]


class AbstractCheckpointer(abc.ABC):
    """Keeps named arrays under the key of the training that made them; `wideflow.runs.checkpoints`
    keeps files.
    """

    @abc.abstractmethod
    def begun(self) -> bool:
        """Whether anything is kept; where nothing is, no key need be computed to look for it."""

    @abc.abstractmethod
    def due(self, *, force: bool = False) -> bool:
        """Whether `save` would keep a checkpoint now; where not, none need be put together."""

    @abc.abstractmethod
    def load(self, fingerprint: str) -> Arrays | None:
        """The last checkpoint of this training, or None."""

    @abc.abstractmethod
    def save(self, fingerprint: str, arrays: Arrays, *, force: bool = False) -> None:
        """Keeps a checkpoint; may skip it when the last one is recent, unless `force`."""


def fingerprint(*inputs) -> str | None:
    """A hash of everything that decides a training's numbers; None where a part has no identity
    that outlives the process.

    A training without a fingerprint is neither checkpointed nor resumed: it is computed anew, never
    mistaken for another.
    """
    digest = hashlib.sha256()
    try:
        identify(inputs, digest.update, code=True)
    except UnstableIdentityError:
        return None
    # 128 bits: no two trainings share one by chance
    return digest.hexdigest()[:32]


def pack(tree) -> Arrays:
    """All arrays of a tree by number; typed keys as their data."""
    leaves = jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    return {f"leaf/{i}": np.asarray(_plain(leaf)) for i, leaf in enumerate(leaves)}


def unpack(arrays: Arrays, like):
    """The tree `like` with the arrays that `pack` made of such a tree."""
    own, static = eqx.partition(like, eqx.is_array)
    leaves, structure = jax.tree.flatten(own)
    new = []
    for i, leaf in enumerate(leaves):
        value = jnp.asarray(arrays[f"leaf/{i}"])
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            value = jax.random.wrap_key_data(value, impl=jax.random.key_impl(leaf))
        new.append(value)
    return eqx.combine(jax.tree.unflatten(structure, new), static)


def _plain(leaf):
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
