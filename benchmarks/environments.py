"""The environments of the peers: each its own, under `benchmarks/envs`, never a dependency of the
package.
"""

import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).parent
ENVIRONMENTS = {
    "torch": ("torch==2.13.0", "numpy", "setuptools"),
    # the newest JAX on which the fast path of neural-tangents works
    "neural-tangents": (
        "neural-tangents==0.6.5",
        "jax==0.4.25",
        "jaxlib==0.4.25",
        "numpy<2",
        "scipy<1.13",
        "ml_dtypes<0.5",
    ),
}


def python_of(name: str) -> str:
    return str(HERE / "envs" / name / "bin" / "python")


def build(name: str) -> str | None:
    """Builds an environment once; the reason why it could not be built, or None."""
    place = HERE / "envs" / name
    ready = place / "installed"
    requirements = "\n".join(ENVIRONMENTS[name])
    if ready.is_file() and ready.read_text() == requirements:
        return None
    print(f"building benchmarks/envs/{name} ...", flush=True)
    venv.create(place, with_pip=True, clear=True)
    command = [
        python_of(name),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *ENVIRONMENTS[name],
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return (
            done.stderr.strip().splitlines()[-1]
            if done.stderr
            else f"pip ended with {done.returncode}"
        )
    ready.write_text(requirements)
    return None


if __name__ == "__main__":
    faults = {name: build(name) for name in ENVIRONMENTS}
    for name, fault in faults.items():
        print(f"{name}: {fault or 'ready'}")
    sys.exit(any(faults.values()))
