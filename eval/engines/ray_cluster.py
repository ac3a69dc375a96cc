"""Connect to a Ray cluster, or start one on this machine, and check that its hosts can judge a run."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from ...state.errors import UsageError
from .ray_worker import RunDescription, inspect_host

_STORE_BYTES = 200 * 2**20
"""Of a cluster on this machine, the memory for shards on their way to workers and results on their way back."""

_REACH_SECONDS = 10.0


def load_ray() -> Any:
    """Import Ray.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module("ray")
    except ImportError as error:
        raise UsageError('the engine ray needs Ray: pip install "jurygraph[ray]"') from error


@asynccontextmanager
async def cluster(address: str | None, cpus: float) -> AsyncIterator[Any]:
    """Connect to a cluster for as long as the block inside takes.

    Args:
        address: of a cluster that is there, or ``auto``; ``None``: the one that ``RAY_ADDRESS`` names, or that this
            process is connected to, else one on this machine that ends with the block.
        cpus: how many CPUs a cluster on this machine has at least; they are places to fill, not processors.

    Raises:
        UsageError: Ray is not installed, or there is no cluster at the address.
    """
    # Before Ray is imported, which reads them then: no statistics of usage are sent, nor does a cluster on this
    # machine listen on more than the loopback interface. Whoever has set them otherwise is left alone.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None:
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray = load_ray()
    if ray.is_initialized():
        yield ray
        return
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Else a worker that dies makes Ray print a paragraph to standard output; the run's own log says it in a line.
    vars(import_module("ray._private.worker"))["_worker_logs_enabled"] = False
    if address is not None:
        await asyncio.to_thread(check_address, address)
    own = {"num_cpus": max(os.cpu_count() or 1, math.ceil(cpus)), **_HERE} if address is None else {}
    try:
        # In a thread of its own: it takes seconds, and in the main one Ray would take over the handling of SIGTERM.
        await asyncio.to_thread(ray.init, address or "local", **_QUIET, **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = f"at {address}" if address else "on this machine"
        raise UsageError(f"no Ray cluster {where}: {' '.join(str(error).split())[:300]}") from error
    try:
        yield ray
    finally:
        await asyncio.to_thread(ray.shutdown)


_QUIET = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
_HERE: dict[str, Any] = {
    "include_dashboard": False,
    "_node_ip_address": "127.0.0.1",
    "object_store_memory": _STORE_BYTES,
}


def check_address(address: str) -> None:
    """Check that somebody answers at an address; Ray itself would try again for minutes.

    Raises:
        UsageError: nobody does.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdigit()):
        return
    try:
        socket.create_connection((host, int(port)), timeout=_REACH_SECONDS).close()
    except OSError as error:
        raise UsageError(f"no Ray cluster at {address}: {error.strerror or error}") from error


def check_hosts(ray: Any, description: RunDescription, journal: str) -> None:
    """Check on every host that it can judge the run as this one would, before any call.

    Raises:
        UsageError: says which host cannot, and why: another version, or a missing key or package.
    """
    strategies = import_module("ray.util.scheduling_strategies")
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    if not nodes:
        raise UsageError("the Ray cluster has no CPU for a worker")
    for node in nodes:
        on_node = strategies.NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        task = ray.remote(inspect_host).options(num_cpus=0, scheduling_strategy=on_node, max_retries=1)
        try:
            problem = ray.get(task.remote(description, journal))
        except ray.exceptions.RayError as error:
            # Such as another version, which cannot even read the description.
            problem = last_line(error)
        if problem:
            raise UsageError(f"{node['NodeManagerHostname']} cannot judge: {problem}")


def last_line(error: BaseException) -> str:
    """Return what went wrong in a task, without the traceback and the advice that Ray wraps it in."""
    lines = str(getattr(error, "cause", None) or error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
