"""The Dask cluster that a command runs on: one that is there, or a passing one of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rareclass.errors import ErrorKind, InputError

# Seconds that are waited for a scheduler to answer.
_PATIENCE = 5


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address such as tcp://10.0.0.1:8786.

    For "local" a worker a core is started on this machine, and stopped at the end.

    Raises `InputError` where Dask is not installed, on what is no address, and where nobody
    answers.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InputError(
            "--dask: Dask is not installed.",
            'Install it: pip install "rareclass[dask]".',
            ErrorKind.MISSING_PACKAGE,
        ) from error
    if address == "local":
        with (
            LocalCluster(threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    if "://" not in address:
        raise InputError(
            f"--dask {address} is no address of a scheduler.",
            "Give one such as tcp://10.0.0.1:8786, or local for workers on this machine.",
            ErrorKind.COMBINATION,
        )
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--dask {address}: no scheduler answers there ({type(error).__name__}).",
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`.",
            ErrorKind.COMBINATION,
        ) from error
    with client:
        yield client
