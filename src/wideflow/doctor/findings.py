"""A finding of the doctor."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`verdict` is 'well', 'note' (works, but worth knowing) or 'wrong'."""

    what: str
    found: str
    verdict: str = "well"
