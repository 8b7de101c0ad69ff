"""A cluster of several raylets on this machine: loopback only, a token of its own, each raylet to be killed.

Ray's `Cluster` leaves its address where every later `ray.init` looks for one, so it runs in a process
of its own, with a folder of its own for such things.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from unreel.core.settings import override_environment

STORE_BYTES: Final = 100 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Raylets:
    """A cluster that is up: how a driver joins it, and who its nodes are."""

    address: str
    environment: Mapping[str, str]
    """What a driver needs beside the usual variables; the token is among it."""
    pids: tuple[int, ...]
    """The raylets, the one of the head first."""

    def kill(self, number: int) -> None:
        """End a node as a power cut does; the processes that it started end by themselves."""
        os.kill(self.pids[number], signal.SIGKILL)


@contextmanager
def raylets(n_nodes: int, *, cpus: float = 2, store_bytes: int = STORE_BYTES) -> Iterator[Raylets]:
    """That many nodes with `cpus` logical processors each, until the end of the block."""
    # Below a short path: the names of sockets have 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        own = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            # Ray takes a loopback address for its own on other systems, and where this says so.
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_TMPDIR": folder,
        }
        command = [sys.executable, __file__, str(n_nodes), str(cpus), str(store_bytes)]
        with override_environment(own):
            started, told = _start(command)
        with started:
            try:
                environment = own | {"RAY_ADDRESS": told["address"]}
                yield Raylets(
                    address=told["address"], environment=environment, pids=tuple(told["pids"])
                )
            finally:
                started.communicate("")


def _start(command: Sequence[str], *, tries: int = 4) -> tuple[subprocess.Popen[str], Any]:
    """The process of a cluster and what it tells: Ray gives a node 30 s, which a busy machine may not keep."""
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    line = started.stdout.readline() if started.stdout else ""
    if line:
        return started, json.loads(line)
    with started:
        started.wait()
    if tries == 1:
        msg = "Ray did not start its nodes: try again on a machine that is less busy"
        raise TimeoutError(msg)
    return _start(command, tries=tries - 1)


def _serve(n_nodes: int, cpus: float, store_bytes: int) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    nodes = [
        cluster.add_node(
            num_cpus=cpus,
            object_store_memory=store_bytes,
            include_dashboard=False,
            include_log_monitor=False,
        )
        for _ in range(n_nodes)
    ]
    pids = [node.all_processes["raylet"][0].process.pid for node in nodes]
    sys.stdout.write(json.dumps({"address": cluster.address, "pids": pids}) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for node in reversed(nodes):
        node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
