"""What computed a run: versions of what matters, the revision of the source, the device."""

import functools
import hashlib
import importlib.metadata
import pathlib
import platform
import subprocess

PACKAGES = ("wideflow", "jax", "jaxlib", "equinox", "diffrax", "numpy", "scipy", "xarray")


@functools.cache
def versions() -> dict[str, str]:
    """Python and every package that decides numbers ('missing' where one is not installed), and
    `sources`.
    """
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            numbers[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            numbers[package] = "missing"
    return numbers | {"sources": sources()}


@functools.cache
def sources() -> str:
    """A hash of wideflow's own source files: two records with the same one were computed by the
    same code.
    """
    package = pathlib.Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@functools.cache
def revision() -> str:
    """The git revision of the source, with '+' where files differ from it; 'unknown' outside a
    checkout.
    """
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
