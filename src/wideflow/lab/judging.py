"""The theorems on the network and the data of free play."""

import math
import re
from typing import Any

from .messages import Verdicts


def judge(settings: Any, seed: int) -> Verdicts:
    """`wf.certify` on the first network of the run, before training."""
    import jax

    from ..certify.build import certify
    from ..experiments.training import build

    if settings.depth > 1:
        return Verdicts(
            "The theorems are about networks with one hidden layer; this one has "
            f"{settings.depth}.",
            (),
        )
    networks, training, _ = build(settings, jax.random.key(seed))
    certificate = certify(networks[0], training, key=seed)
    rows = [
        (p.outcome.name, in_words(p.about), p.name, requirement(p), in_words(p.message))
        for p in certificate.telling
    ]
    speaking = tuple(row for row in rows if row[0] != "NOT_APPLICABLE")
    unmet = [
        (f"{about} ({name})", f"{need}; {why}" if need else why)
        for outcome, about, name, need, why in rows
        if outcome == "NOT_APPLICABLE"
    ]
    silent = [(names, in_words(reason)) for names, reason in certificate.silent]
    return Verdicts(headline(certificate), speaking, (*unmet, *silent), numbers(certificate))


def numbers(certificate) -> tuple[tuple[str, str, str], ...]:
    """The certificate's numbers in words, with the richness in place of the laziness index."""
    here = certificate.laziness.here
    rows = [tuple(map(in_words, row)) for row in certificate.rows()]
    forecast = ("predicted richness", f"{here.richness:.3g} ({here.verdict})")
    return tuple(
        (*forecast, meaning) if "laziness index" in what else (what, value, meaning)
        for what, value, meaning in rows
    )


def headline(certificate) -> str:
    """Whether any theorem covers this width, and if none does, how far the nearest is; then the
    forecast.
    """
    ahead = certificate.laziness
    forecast = (
        f"Before training, the forecast for the way to {ahead.share:.0%} of the loss is "
        f"{ahead.here.verdict} "
        f"(richness {ahead.here.richness:.2g}); the dial above shows this run."
    )
    return f"{_covered(certificate)} {forecast}"


def _covered(certificate) -> str:
    from ..theorems.base import Outcome

    holding = [p for p in certificate.telling if p.outcome is Outcome.HOLDS]
    if holding:
        count = f"{len(holding)} theorems apply" if len(holding) > 1 else "One theorem applies"
        return f"{count} to this very network, first: {holding[0].about} ({holding[0].name})."
    asking = [p for p in certificate.telling if math.isfinite(p.required) and p.shortfall > 1]
    if not asking:
        return "No theorem covers this network and these data."
    nearest = min(asking, key=lambda p: p.required)
    return (
        f"No theorem covers this width. The nearest ({nearest.name}) requires "
        f"{number(nearest.required)} neurons, "
        f"{number(nearest.shortfall)} times as many, and has further conditions."
    )


def requirement(promise) -> str:
    """The width that a statement asks for and the rate that it promises, in words."""
    parts = []
    if not promise.width_helps:
        parts.append("no width helps")
    elif math.isfinite(promise.required):
        enough = (
            "which it has"
            if promise.shortfall <= 1
            else f"{number(promise.shortfall)} times as many"
        )
        parts.append(f"{number(promise.required)} neurons, {enough}")
    if math.isfinite(promise.rate):
        parts.append(f"guarantees the rate {number(promise.rate)}")
    return "; ".join(parts)


def number(value: float) -> str:
    """Three digits where one reads them, else a power of ten.

    >>> number(2.24e45), number(0.0312), number(4820.0)
    ('2.2 · 10^45', '0.0312', '4820')
    """
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        power = math.floor(math.log10(abs(value)))
        return f"{value / 10**power:.2g} · 10^{power}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


WORDS = (
    (r"Zipf\(gamma=([\d.]+), alpha=([\d.]+)[^)]*\)", r"node scaling with γ = \1, α = \2"),
    (r"MeanField\(hidden=1(\.0)?\)", "the older mean field"),
    (r"MeanField(\(\))?", "mean field"),
    (r"\bNTK\(\)", "NTK"),
    (r"; `?wf\.maps`? writes [^;]*", ""),
    (r"; `?wf\.\w+[^;]* is that setting", ""),
    (r" \(a test of size [^)]*\)", ""),
    (r"; `?train=True`? measures it", ""),
    (r"\bkappa_n\b", "κ_n"),
    (r"\blambda_min\b", "λ_min"),
    (r"`", ""),
)
POWER = re.compile(r"10\^(-?\d+(\.\d+)?)")


def in_words(message: str) -> str:
    """A verdict's reason without program text.

    >>> in_words("the scaling is Zipf(gamma=0.1, alpha=0.5, released=False), not MeanField()")
    'the scaling is node scaling with γ = 0.1, α = 0.5, not mean field'
    >>> in_words("width 10^2.6 of 10^2.13")
    'width 398 of 135'
    """
    for pattern, words in WORDS:
        message = re.sub(pattern, words, message)
    return POWER.sub(lambda match: number(10 ** float(match[1])), message)
