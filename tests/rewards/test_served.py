"""The service as a process: uploads over a socket, a drain on SIGTERM, kills under load."""

import asyncio
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import Any

import httpx
import pytest

from chat import Reply, says, serve_chat
from scripted import ANSWERS

Clips = Callable[[int], bytes]


@contextmanager
def served(
    folder: Path, *options: str, port: int = 0
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and its address."""
    command = [str(Path(sys.executable).with_name("unreel")), "reward", "serve", *options]
    command += ["--port", str(port), "--store", str(folder / "cache.sqlite"), "--trusted"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://\S+", line):
                yield process, found[0]
                break
        else:
            pytest.fail("the service did not start")
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
    request = json.dumps({"items": [{"video": {"upload": "clip"}}], **fields})
    return await client.post("/v1/rewards", data={"request": request}, files={"clip": data})


def test_sigterm_finishes_the_requests_that_run(tmp_path: Path, clip_bytes: Clips) -> None:
    def slowly(body: bytes, headers: Message) -> Reply:
        time.sleep(1)
        return says(ANSWERS["reality"])

    async def work(process: subprocess.Popen[str], address: str) -> dict[str, Any]:
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            running = asyncio.create_task(ask(client, clip_bytes(0)))
            await asyncio.sleep(0.7)
            process.send_signal(signal.SIGTERM)
            return (await running).json()["results"][0]

    with serve_chat(slowly) as chat:
        model = f"compatible/tiny@http://127.0.0.1:{chat}/v1"
        with served(tmp_path, "--model", model, "--protocol", "reality") as (process, address):
            result = asyncio.run(work(process, address))
            assert result["value"] is not None, result
            assert process.wait(timeout=30) == 0


@pytest.mark.slow
@pytest.mark.parametrize("ask_once", [False, True])
def test_kills_lose_no_request_and_repeat_no_stored_answer(
    tmp_path: Path, clip_bytes: Clips, *, ask_once: bool
) -> None:
    """20 kills under load: each request ends in a value, a null with a reason, or a refusal."""
    n_kills = int(os.environ.get("REWARD_KILLS", "20"))
    asked: Counter[str] = Counter()

    def count(body: bytes, headers: Message) -> Reply:
        asked["questions"] += 1
        time.sleep(0.02)
        return says(ANSWERS["reality"])

    clips = [padded(clip_bytes(number % 4), number) for number in range(40 * n_kills)]
    ends: Counter[str] = Counter()

    async def ask_until_answered(client: httpx.AsyncClient, data: bytes) -> None:
        for _ in range(200):
            try:
                reply = await ask(client, data)
            except httpx.TransportError:
                ends["connection closed"] += 1
                await asyncio.sleep(0.3)
                continue
            assert reply.status_code in {200, 429, 503}, reply.text
            if reply.status_code == 200:
                (result,) = reply.json()["results"]
                if result["value"] is not None:
                    ends["value"] += 1
                    return
                ends[result["failure"]["reason"]] += 1
                if result["failure"]["reason"] == "worker-died":
                    return
            await asyncio.sleep(0.3)
        pytest.fail("no answer after 200 requests")

    async def load(address: str, stop: asyncio.Event) -> None:
        limits = httpx.Limits(max_connections=16)
        async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
            room = asyncio.Semaphore(16)

            async def one(data: bytes) -> None:
                async with room:
                    await ask_until_answered(client, data)

            await asyncio.gather(*(one(data) for data in clips))
        stop.set()

    async def work() -> int:
        stop, kills = asyncio.Event(), 0
        port = _free_port()
        options = ["--model", model, "--protocol", "reality", *(["--ask-once"] if ask_once else [])]
        loading: asyncio.Task[None] | None = None
        while not stop.is_set():
            with served(tmp_path, *options, port=port) as (process, address):
                loading = loading or asyncio.create_task(load(address, stop))
                if kills < n_kills:
                    await asyncio.sleep(1.5)
                    process.kill()
                    kills += 1
                else:
                    await stop.wait()
        assert loading is not None
        await loading
        return kills

    with serve_chat(count) as chat:
        model = f"compatible/tiny@http://127.0.0.1:{chat}/v1"
        assert asyncio.run(work()) == n_kills
    print(f"ask once {ask_once}: {dict(ends)}, {asked['questions']} questions, {len(clips)} clips")
    assert ends["value"] + ends["worker-died"] == len(clips)
    if ask_once:
        assert asked["questions"] <= len(clips)
    else:
        assert ends["worker-died"] == 0


def _free_port() -> int:
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
