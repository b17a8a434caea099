"""The theorems on the network and the data of free play."""

from typing import Any

from .messages import Verdicts


def judge(settings: Any, seed: int) -> Verdicts:
    """`wf.certify` on the first network of the run, before training."""
    import jax

    from ..certify import certify
    from ..experiments.training import build

    networks, training, _ = build(settings, jax.random.key(seed))
    found = certify(networks[0], training, key=seed)
    rows = [
        (promise.outcome.name, promise.name, " ".join(filter(None, (promise.told_width(), promise.told_rate()))), promise.message)
        for promise in found.telling
    ]  # fmt: skip
    rows += [("NOT_APPLICABLE", names, "", reason) for names, reason in found.silent]
    return Verdicts(found.headline, tuple(rows), found.rows())
