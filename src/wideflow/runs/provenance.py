"""What computed a run: versions of what matters, the revision of the source, the device."""

import functools
import importlib.metadata
import pathlib
import platform
import subprocess

PACKAGES = ("wideflow", "jax", "jaxlib", "equinox", "diffrax", "numpy", "scipy", "xarray")


@functools.cache
def versions() -> dict[str, str]:
    """Python and every package that decides numbers; 'missing' where one is not installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "missing"
    return found


@functools.cache
def revision() -> str:
    """The git revision of the source, with '+' where files differ from it; 'unknown' outside a checkout."""
    here = pathlib.Path(__file__).parent
    head = _git(here, "rev-parse", "--short=12", "HEAD")
    if head is None:
        return "unknown"
    changed = _git(here, "status", "--porcelain", "--untracked-files=normal", "--", "..")
    return head + ("+" if changed else "")


def _git(folder: pathlib.Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
