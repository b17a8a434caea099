"""Is this installation well? What it runs on, and whether independent routes to the same numbers
agree.
"""

import pathlib

from .findings import Finding as Finding
from .machine import look_over
from .routes import compare_routes


def examine(out: str | pathlib.Path = "runs") -> list[Finding]:
    """All findings, those on the machine first; takes seconds."""
    return [*look_over(pathlib.Path(out)), *compare_routes()]
