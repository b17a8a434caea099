"""Access control: certificates made for one sweep, so that scheduler, workers and client talk to
each other and to nobody else.

A Dask scheduler and its workers run whatever code a connected client sends. Without certificates
any user of the machine could connect, the loopback address included. So an embedded cluster speaks
TLS with a certificate and key that are made when it starts: one pair for all of its processes,
signed by itself, so that each accepts those who hold the very same certificate. The files lie in a
folder that only their owner can enter, and go with the sweep.

Clusters of one's own take the same files: `write_certificates(folder)` makes them, Dask's options
`--tls-ca-file`, `--tls-cert` and `--tls-key` read them, and `sweep(..., security=folder)` connects
with them.
"""

import os
import pathlib

from distributed.security import Security

from ..._core.errors import check_kind, check_path

CERTIFICATE, KEY = "certificate.pem", "key.pem"


def write_certificates(folder: str | os.PathLike) -> pathlib.Path:
    """Makes a certificate and its key in `folder`, which only the owner can enter (mode 0700);
    returns the folder.
    """
    place = pathlib.Path(folder)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.chmod(0o700)
    temporary = Security.temporary()  # a self-signed certificate, as text; it needs `cryptography`
    _write(place / CERTIFICATE, str(temporary.tls_ca_file))
    _write(place / KEY, str(temporary.tls_client_key))
    return place


def check_security(scheduler: str | None, security: str | os.PathLike | None) -> None:
    """A folder of certificates belongs to a scheduler, and one that speaks TLS to a folder."""
    if scheduler is not None:
        check_kind("scheduler", scheduler, str, "an address such as 'tls://host:8786'")
        if security is None and scheduler.startswith("tls:"):
            raise ValueError(
                f"`security` must be the folder with the certificate and key of {scheduler}, got "
                "None: it speaks TLS."
            )
    if security is not None:
        if scheduler is None:
            raise ValueError(
                "`security` holds the certificate of a `scheduler`, which is not given: name its "
                "address, or leave `security` out."
            )
        security_of(security)


def security_of(folder: str | os.PathLike) -> Security:
    """The settings of Dask for all roles, with the files in `folder`."""
    check_path("security", folder)
    place = pathlib.Path(folder)
    certificate, key = str(place / CERTIFICATE), str(place / KEY)
    for path in (certificate, key):
        if not os.path.isfile(path):
            raise ValueError(
                f"`security` must be a folder with {CERTIFICATE} and {KEY}, got {str(folder)!r}. "
                "Make one with `wideflow.runs.sweeps.security.write_certificates(folder)`."
            )
    roles = {
        f"tls_{role}_{part}": path
        for role in ("client", "scheduler", "worker")
        for part, path in (("cert", certificate), ("key", key))
    }
    return Security(tls_ca_file=certificate, require_encryption=True, **roles)


def _write(path: pathlib.Path, text: str) -> None:
    """A file that was never readable by others, not even for a moment."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
