"""Nobody without the certificate comes in."""

import asyncio
import concurrent.futures
import stat

import pytest
from distributed import Client

from wideflow.runs.sweeps.cluster import connected
from wideflow.runs.sweeps.security import CERTIFICATE, KEY, security_of, write_certificates


def test_only_the_owner_can_read_the_files(tmp_path):
    folder = write_certificates(tmp_path / "tls")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in (CERTIFICATE, KEY):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


def test_a_folder_without_certificates_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="`security` must be a folder"):
        security_of(tmp_path)


def test_strangers_are_refused_by_the_scheduler_and_by_the_workers(tmp_path):
    with connected(None, 1, 1) as engine:
        assert engine.client.submit(lambda: 6 * 7).result(timeout=60) == 42
        scheduler = engine.client.scheduler.address
        (worker,) = engine.client.scheduler_info()["workers"]
        assert scheduler.startswith("tls://")
        assert worker.startswith("tls://")

        with pytest.raises((OSError, TimeoutError)):  # plain, to the same port
            Client(scheduler.replace("tls", "tcp", 1), timeout=3)
        forged = security_of(write_certificates(tmp_path))  # a certificate, but not this one
        with pytest.raises((OSError, TimeoutError)):
            Client(scheduler, security=forged, timeout=3)
        with pytest.raises((OSError, TimeoutError)):
            in_thread(lambda: asyncio.run(_knock(worker.replace("tls", "tcp", 1))))


def in_thread(work):
    """A browser's event loop may run in this thread."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


async def _knock(address: str):
    from distributed.core import rpc

    async with rpc(address, timeout=3) as remote:
        return await asyncio.wait_for(remote.identity(), 3)
