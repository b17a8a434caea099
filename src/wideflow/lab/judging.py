"""The theorems on the network and the data of free play."""

from typing import Any

from .messages import Verdicts


def judge(settings: Any, seed: int) -> Verdicts:
    """`wf.certify` on the first network of the run, before training."""
    import jax

    from ..certify.build import certify
    from ..experiments.training import build

    networks, training, _ = build(settings, jax.random.key(seed))
    found = certify(networks[0], training, key=seed)
    rows = [
        (promise.outcome.name, promise.name, ", ".join(filter(None, (promise.width_text(), promise.rate_text()))), promise.message)
        for promise in found.telling
    ]  # fmt: skip
    rows += [("NOT_APPLICABLE", names, "", reason) for names, reason in found.silent]
    ahead = found.laziness
    headline = (
        f"{found.counted}. Judged before training. The forecast from the start, for a run that brings the loss to {ahead.share:.0%}: "
        f"{ahead.here.verdict} (laziness index {ahead.here.index:.2f}); the dial above shows this run."
    )
    return Verdicts(headline, tuple(rows), found.rows())
