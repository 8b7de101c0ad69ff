"""The reward service as a process, for tests: start it, ask it, kill it under load."""

import asyncio
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from scripted import ANSWERS

_EVERY_S, _LEAST_VALUES = 0.7, 10
"""A service is killed after this time, if it has scored so many clips since the kill before."""
_MOST_REQUESTS = 2000
"""Requests for one clip: 10 minutes, in which Ray starts on a busy machine."""


@contextmanager
def served(
    folder: Path, *options: str, port: int = 0, store: str = "cache.sqlite", trusted: bool = True
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command in a process of its own, and its address."""
    command = [str(Path(sys.executable).with_name("unreel")), "reward", "serve", *options]
    command += ["--port", str(port), "--store", store, *(["--trusted"] if trusted else [])]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    lines: list[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"unreel reward: (http://\S+)", line):
                break
        else:
            raise AssertionError("".join(lines))
        yield process, found[1]
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def recorded(folder: Path, clips: list[bytes]) -> Path:
    """Answers to `trace` and `realism` about each clip, by its content hash."""
    path = folder / "answers.jsonl"
    rows = [
        {"name": hashlib.sha256(data).hexdigest(), "protocol": name, "text": ANSWERS[name]}
        for data in clips
        for name in ("trace", "realism")
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def padded(data: bytes, number: int, size: int = 0) -> bytes:
    """The clip with a trailing `free` box: other bytes, the same video."""
    body = number.to_bytes(8, "big").ljust(max(8, size - len(data) - 8), b"\0")
    return data + (len(body) + 8).to_bytes(4, "big") + b"free" + body


async def ask(
    client: httpx.AsyncClient, data: bytes, *, address: str = "", **fields: Any
) -> httpx.Response:
    """Upload one clip."""
    request = {"request": json.dumps({"items": [{"video": {"upload": "clip"}}], **fields})}
    return await client.post(f"{address}/v1/rewards", data=request, files={"clip": data})


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class KillTrial:
    """Clients that score each clip and retry, while services are killed in turns.

    With `--engine ray` there is one service, and its replicas are killed in turns.
    """

    folder: Path
    clips: list[bytes]
    options: list[str]
    n_kills: int
    n_processes: int = 1
    store: str = "cache.sqlite"
    ends: Counter[str] = field(default_factory=Counter)
    """How requests ended."""
    kills: int = 0
    _values_at_kill: int = 0

    async def run(self) -> None:
        stop, ports = asyncio.Event(), [free_port() for _ in range(self.n_processes)]
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        loading = asyncio.create_task(self._load(addresses, stop))
        await asyncio.gather(*(self._keep_up(port, stop) for port in ports))
        await loading
        assert self.kills == self.n_kills

    async def _keep_up(self, port: int, stop: asyncio.Event) -> None:
        """Run the service on `port`; kill and restart it while kills are left."""
        while not stop.is_set():
            command = served(self.folder, *self.options, port=port, store=self.store)
            process, _ = await asyncio.to_thread(command.__enter__)
            try:
                while not stop.is_set() and process.poll() is None:
                    await self._wait(stop)
                    is_ray = "ray" in self.options
                    victims = find_replicas(process.pid) if is_ray else [process.pid]
                    is_loaded = self.ends["value"] >= self._values_at_kill + _LEAST_VALUES
                    if not stop.is_set() and is_loaded and victims and self.kills < self.n_kills:
                        os.kill(victims[self.kills % len(victims)], signal.SIGKILL)
                        if not is_ray:
                            await asyncio.to_thread(process.wait)
                        self.kills += 1
                        self._values_at_kill = self.ends["value"]
                        await asyncio.sleep(0.1)
            finally:
                await asyncio.to_thread(command.__exit__, None, None, None)

    async def _wait(self, stop: asyncio.Event) -> None:
        left = self.kills < self.n_kills
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _EVERY_S if left else None)

    async def _load(self, addresses: list[str], stop: asyncio.Event) -> None:
        room = asyncio.Semaphore(16)
        try:
            async with httpx.AsyncClient(timeout=60) as client:

                async def one(number: int) -> None:
                    async with room:
                        await self._ask(client, number, addresses)

                await asyncio.gather(*(one(number) for number in range(len(self.clips))))
        finally:
            stop.set()

    async def _ask(self, client: httpx.AsyncClient, number: int, addresses: list[str]) -> None:
        for attempt in range(_MOST_REQUESTS):
            address = addresses[(number + attempt) % len(addresses)]
            end = await self._ask_once(client, address, self.clips[number])
            self.ends[end] += 1
            if end in {"value", "worker-died"}:
                return
            await asyncio.sleep(0.3)
        msg = f"no answer after {_MOST_REQUESTS} requests"
        raise AssertionError(msg)

    async def _ask_once(self, client: httpx.AsyncClient, address: str, data: bytes) -> str:
        try:
            reply = await ask(client, data, address=address)
        except httpx.TransportError:
            return "connection closed"
        if reply.status_code != HTTPStatus.OK:
            # Ray's proxy answers 500 if the replica ends during a request, 404 while no replica runs.
            assert reply.status_code in {404, 429, 500, 502, 503}, reply.text
            return str(reply.status_code)
        (result,) = reply.json()["results"]
        return "value" if result["value"] is not None else str(result["failure"]["reason"])


def find_replicas(pid: int) -> list[int]:
    """Process ids of the Ray Serve replicas below process `pid`."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        with suppress(OSError):
            for path in Path(f"/proc/{parent}/task").glob("*/children"):
                waiting += map(int, path.read_text().split())
            if Path(f"/proc/{parent}/cmdline").read_bytes().startswith(b"ray::ServeReplica"):
                found.append(parent)
    return found
