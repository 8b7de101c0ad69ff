"""Load on the reward service, for tests and `benchmarks/reward_load.py`: rates, memory and attackers."""

import asyncio
import hashlib
import itertools
import json
import os
import pickle
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from reward_process import free_port, served
from scripted import ANSWERS
from synthesise import ClipRecipe, synthesise

TOKEN = "load"
BARE = Path(__file__).parent / "rewards" / "bare.py"
_HUGE = b"POST /v1/rewards HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 10737418240\r\n"
_BEARER = f"authorization: Bearer {TOKEN}\r\n".encode()


class UploadSource:
    """Uploads of clips with the same video and other bytes: number N ends with N."""

    def __init__(self, size: int) -> None:
        video = synthesise(ClipRecipe(n_frames=8, rate=Fraction(8)))
        n_free = max(16, size - len(video))
        self._clip = video + n_free.to_bytes(4, "big") + b"free" + bytes(n_free - 16)
        text = json.dumps({"items": [{"video": {"upload": "clip"}}]})
        start = f'--x\r\ncontent-disposition: form-data; name="request"\r\n\r\n{text}\r\n'
        start += '--x\r\ncontent-disposition: form-data; name="clip"; filename="a.mp4"\r\n\r\n'
        self._end = b"\r\n--x--\r\n"
        length = len(start) + len(self._clip) + 8 + len(self._end)
        self.head = (
            f"POST /v1/rewards HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {length}\r\n"
            "content-type: multipart/form-data; boundary=x\r\n"
        ).encode() + _BEARER
        self._start = self.head + b"\r\n" + start.encode() + self._clip

    def build(self, number: int) -> bytes:
        """The request of a clip, as it goes over the socket."""
        return self._start + number.to_bytes(8, "big") + self._end

    def record(self, folder: Path, n_clips: int) -> Path:
        """Write the answers to `trace` and `realism` about clips 0 to `n_clips` - 1."""
        common, path = hashlib.sha256(self._clip), folder / "answers.jsonl"
        with path.open("w") as file:
            for number in range(n_clips):
                digest = common.copy()
                digest.update(number.to_bytes(8, "big"))
                for name in ("trace", "realism"):
                    row = {"name": digest.hexdigest(), "protocol": name, "text": ANSWERS[name]}
                    file.write(json.dumps(row) + "\n")
        return path


@dataclass
class LoadResult:
    """Latencies in seconds of the replies with a value, refusals with 429, and other replies."""

    seconds: float
    refused: int = 0
    latencies: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    @property
    def p99_ms(self) -> float:
        return 1000 * float(np.quantile(self.latencies, 0.99))


@asynccontextmanager
async def _connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> bytes:
    """Send a request and return the status line and body of its reply."""
    writer.write(request)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    line, length = head.partition(b"\r\n")[0], head.lower().partition(b"content-length: ")[2]
    if not length:  # Ray's proxy sends pieces
        return line + await reader.readuntil(b"\r\n0\r\n\r\n")
    return line + await reader.readexactly(int(length.partition(b"\r\n")[0]))


async def send_load(
    port: int, source: UploadSource, numbers: Iterator[int], *, clients: int, seconds: float
) -> LoadResult:
    """Send clips with the given numbers from `clients` connections, each without a pause."""
    result = LoadResult(seconds)
    until_s = time.monotonic() + seconds

    async def send() -> None:
        async with _connected(port) as (reader, writer):
            while time.monotonic() < until_s:
                began_s = time.monotonic()
                reply = await exchange(reader, writer, source.build(next(numbers)))
                if b" 200 " in reply[:20] and b'"value":null' not in reply:
                    result.latencies.append(time.monotonic() - began_s)
                elif b" 429 " in reply[:20]:
                    result.refused += 1
                    await asyncio.sleep(1)
                else:
                    result.errors[reply[:200].decode("latin-1")] += 1

    await asyncio.gather(*(send() for _ in range(clients)))
    return result


@contextmanager
def serve_bare() -> Iterator[int]:
    """The port of an endpoint that receives and hashes an upload."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(BARE), str(port)])
    try:
        for _ in range(600):
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


@contextmanager
def serve_recorded(
    folder: Path, source: UploadSource, n_clips: int, *options: str
) -> Iterator[tuple[int, int]]:
    """The process id and port of a service that knows the answers about `n_clips` clips."""
    answers = source.record(folder, n_clips)
    given = ["--model", "recorded", "--recorded", str(answers), *options]
    with served(folder, *given) as (process, address):
        yield process.pid, int(address.rpartition(":")[2])


def measure_rates(
    folder: Path, *, rounds: int, seconds: float, clients: int, size: int, most_rate: int = 400
) -> dict[str, list[LoadResult]]:
    """Measure a bare endpoint, repeated clips and distinct clips in turns, in one run."""
    source = UploadSource(size)
    results: dict[str, list[LoadResult]] = {"bare": [], "repeated": [], "distinct": []}
    n_clips = 64 + int(rounds * seconds * most_rate)
    distinct = itertools.count(64)
    with serve_bare() as bare, serve_recorded(folder, source, n_clips) as (_, port):
        plans = {
            "bare": (bare, itertools.cycle(range(64))),
            "repeated": (port, itertools.cycle(range(64))),
            "distinct": (port, distinct),
        }
        for at in (bare, port):  # every repeated clip is scored once
            warm = itertools.cycle(range(64))
            asyncio.run(send_load(at, source, warm, clients=8, seconds=min(2.0, seconds)))
        for _ in range(rounds):
            for name, (at, numbers) in plans.items():
                load = send_load(at, source, numbers, clients=clients, seconds=seconds)
                results[name].append(asyncio.run(load))
    return results


def measure_memory(
    folder: Path, *, minutes: float, clients: int = 16, size: int = 200_000, most_rate: int = 50
) -> tuple[list[float], int]:
    """Return the resident memory in MB at the end of each tenth of the time, and the number of clips.

    Each clip is sent once.
    """
    source, sizes, numbers = UploadSource(size), [], itertools.count()
    n_clips = max(2_000, int(60 * minutes * most_rate))  # a short run may be faster than that rate
    with serve_recorded(folder, source, n_clips, "--log", "rewards.jsonl") as (pid, port):
        is_ready = False
        while not is_ready:  # the first question waits for the index of all answers
            load = send_load(port, source, numbers, clients=1, seconds=0.01)
            is_ready = bool(asyncio.run(load).latencies)
        for _ in range(10):
            load = send_load(port, source, numbers, clients=clients, seconds=6 * minutes)
            result = asyncio.run(load)
            assert not result.errors, result.errors
            sizes.append(round(_read_resident_mb(pid), 1))
    return sizes, next(numbers)


def _read_resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_attack(folder: Path, *, seconds: float) -> tuple[LoadResult, LoadResult, Counter[str]]:
    """Return the load of 4 honest callers without and with attackers, and the replies to attackers."""
    source = UploadSource(200_000)
    tokens = folder / "tokens.toml"
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    limits = "rate = 100000\nconcurrency = 1000\n"
    tokens.write_text(f'[[token]]\nname = "honest"\nsha256 = "{digest}"\n{limits}')
    options = ("--tokens", str(tokens), "--dialect", "pickle")
    replies: Counter[str] = Counter()
    with serve_recorded(folder, source, 64, *options) as (_, port):

        async def work() -> tuple[LoadResult, LoadResult]:
            def honest() -> "asyncio.Task[LoadResult]":
                numbers = itertools.cycle(range(64))
                load = send_load(port, source, numbers, clients=4, seconds=seconds)
                return asyncio.create_task(load)

            await honest()
            calm = await honest()
            async with attack(port, source, replies):
                return calm, await honest()

        calm, attacked = asyncio.run(work())
    return calm, attacked, replies


@asynccontextmanager
async def attack(port: int, source: UploadSource, replies: Counter[str]) -> AsyncIterator[None]:
    """Attack: 50 slow uploads, and floods of 10 GB lengths, wrong tokens and hostile pickles."""

    async def trickle() -> None:
        async with _connected(port) as (_, writer):
            writer.write(source.head + b"\r\n")
            while True:
                writer.write(b"-")
                await asyncio.sleep(0.2)

    async def flood(name: str, requests: Sequence[bytes]) -> None:
        for request in itertools.cycle(requests):
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                async with _connected(port) as (reader, writer):
                    writer.write(request)
                    status = (await reader.readline()).split(b" ")[1:2]
                    replies[f"{name} {b''.join(status).decode()}"] += 1
            await asyncio.sleep(0.02)

    wrong = source.build(0).replace(_BEARER, b"authorization: Bearer wrong\r\n")
    tasks = [asyncio.create_task(trickle()) for _ in range(50)]
    for name, requests in (
        ("10 GB", [_HUGE + _BEARER + b"\r\n"]),
        ("wrong token", [wrong]),
        ("pickle", [_build_pickle_request(data) for data in hostile_pickles()]),
    ):
        tasks.append(asyncio.create_task(flood(name, requests)))
    await asyncio.sleep(0.5)
    try:
        yield
        ended = [task for task in tasks if task.done()]
        assert not ended, ended
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def hostile_pickles() -> list[bytes]:
    """A call of a global, a memo index of 4 GB, 400,000 nested lists, and no pickle."""
    call = b"cos\nsystem\n(S'false'\ntR."
    memo = b"\x80\x04]r\xff\xff\xff\xff."
    nested = b"\x80\x04" + b"]" * 400_000 + b"a" * 399_999 + b"."
    return [call, memo, nested, pickle.dumps({"images": [b"no picture"], "prompts": ["a"]}), b"?"]


def _build_pickle_request(data: bytes) -> bytes:
    head = f"POST /pickle HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(data)}\r\n"
    return head.encode() + _BEARER + b"\r\n" + data
