"""The reward service as a process, for tests: start it, ask it, kill it under load."""

import asyncio
import hashlib
import json
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from scripted import ANSWERS


@contextmanager
def served(
    folder: Path, *options: str, port: int = 0
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command in a process of its own, and its address."""
    command = [str(Path(sys.executable).with_name("unreel")), "reward", "serve", *options]
    command += ["--port", str(port), "--store", str(folder / "cache.sqlite"), "--trusted"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    lines: list[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"http://\S+", line):
                break
        else:
            raise AssertionError("".join(lines))
        yield process, found[0]
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


async def ask(client: httpx.AsyncClient, data: bytes, **fields: Any) -> httpx.Response:
    """Upload one clip."""
    request = json.dumps({"items": [{"video": {"upload": "clip"}}], **fields})
    return await client.post("/v1/rewards", data={"request": request}, files={"clip": data})


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class KillTrial:
    """Clients that score each clip and retry, while the service is killed again and again."""

    folder: Path
    clips: list[bytes]
    options: list[str]
    n_kills: int
    ends: Counter[str] = field(default_factory=Counter)
    """How requests ended."""

    async def run(self) -> None:
        stop, port, kills = asyncio.Event(), free_port(), 0
        loading: asyncio.Task[None] | None = None
        while not stop.is_set():
            with served(self.folder, *self.options, port=port) as (process, address):
                loading = loading or asyncio.create_task(self._load(address, stop))
                if kills < self.n_kills:
                    await asyncio.sleep(1.5)
                    process.kill()
                    kills += 1
                else:
                    await stop.wait()
        assert loading is not None
        await loading
        assert kills == self.n_kills

    async def _load(self, address: str, stop: asyncio.Event) -> None:
        room = asyncio.Semaphore(16)
        try:
            async with httpx.AsyncClient(base_url=address, timeout=60) as client:

                async def one(data: bytes) -> None:
                    async with room:
                        await self._ask(client, data)

                await asyncio.gather(*(one(data) for data in self.clips))
        finally:
            stop.set()

    async def _ask(self, client: httpx.AsyncClient, data: bytes) -> None:
        for _ in range(400):
            end = await self._ask_once(client, data)
            self.ends[end] += 1
            if end in {"value", "worker-died"}:
                return
            await asyncio.sleep(0.3)
        msg = "no answer after 400 requests"
        raise AssertionError(msg)

    async def _ask_once(self, client: httpx.AsyncClient, data: bytes) -> str:
        try:
            reply = await ask(client, data)
        except httpx.TransportError:
            return "connection closed"
        assert reply.status_code in {200, 429, 503}, reply.text
        if reply.status_code != 200:
            return str(reply.status_code)
        (result,) = reply.json()["results"]
        return "value" if result["value"] is not None else str(result["failure"]["reason"])
