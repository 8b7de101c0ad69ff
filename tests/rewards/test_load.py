"""Load, memory and attackers beside other callers; the long forms are `slow`."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from reward_process import free_port, padded, recorded, served

Clips = Callable[[int], bytes]


def request_bytes(data: bytes) -> bytes:
    """One upload as it goes over the socket."""
    text = json.dumps({"items": [{"video": {"upload": "clip"}}]})
    parts = [
        f'--x\r\ncontent-disposition: form-data; name="request"\r\n\r\n{text}\r\n'.encode(),
        b'--x\r\ncontent-disposition: form-data; name="clip"; filename="a.mp4"\r\n\r\n' + data,
        b"\r\n--x--\r\n",
    ]
    body = b"".join(parts)
    head = f"POST /v1/rewards HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"content-type: multipart/form-data; boundary=x\r\n\r\n" + body


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> bytes:
    """Send a request and return the status line and body of its reply."""
    writer.write(request)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return head.partition(b"\r\n")[0] + await reader.readexactly(length)


async def measure(port: int, requests: list[bytes], *, clients: int, seconds: float) -> list[float]:
    """Return the latency of each reply of `clients` that send all the time."""
    latencies: list[float] = []
    until_s = time.monotonic() + seconds

    async def send(first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        place = first
        while time.monotonic() < until_s:
            began_s = time.monotonic()
            reply = await exchange(reader, writer, requests[place % len(requests)])
            latencies.append(time.monotonic() - began_s)
            assert b" 200 " in reply[:20], reply[:300]
            assert b'"value":null' not in reply, reply[:600]
            place += clients
        writer.close()

    await asyncio.gather(*(send(first) for first in range(clients)))
    return latencies


@contextmanager
def bare() -> Iterator[int]:
    port = free_port()
    script = Path(__file__).with_name("bare.py")
    process = subprocess.Popen([sys.executable, str(script), str(port)])
    try:
        for _ in range(200):
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.alone
def test_load_reaches_most_of_a_bare_endpoint(tmp_path: Path, clip_bytes: Clips) -> None:
    data = padded(clip_bytes(0), 0, size=2_000_000)
    rounds, seconds = int(os.environ.get("REWARD_ROUNDS", "4")), 8.0
    requests = [request_bytes(data)]
    answers = recorded(tmp_path, [data])
    rates: dict[str, list[float]] = {"bare": [], "reward": []}
    with bare() as port, served(tmp_path, "--model", "recorded", "--recorded", str(answers)) as s:
        ports = {"bare": port, "reward": int(s[1].rpartition(":")[2])}
        for at in ports.values():
            asyncio.run(measure(at, requests, clients=4, seconds=1))
        for _ in range(rounds):
            for name, at in ports.items():
                latencies = asyncio.run(measure(at, requests, clients=64, seconds=seconds))
                rates[name].append(len(latencies) / seconds)
    ratio = float(np.median(rates["reward"]) / np.median(rates["bare"]))
    print(f"requests/s: {rates}; ratio {ratio:.2f}")
    assert ratio >= 0.7


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path, clip_bytes: Clips) -> None:
    """30 minutes, or REWARD_MINUTES; every request is a new clip."""
    minutes = float(os.environ.get("REWARD_MINUTES", "30"))
    clips = [padded(clip_bytes(number % 4), number, size=200_000) for number in range(400)]
    answers = recorded(tmp_path, clips)
    requests = [request_bytes(data) for data in clips]
    sizes = []
    with served(tmp_path, "--model", "recorded", "--recorded", str(answers)) as (process, address):
        port = int(address.rpartition(":")[2])
        for _ in range(10):
            asyncio.run(measure(port, requests, clients=16, seconds=6 * minutes))
            sizes.append(_resident_mb(process.pid))
    print(f"resident MB: {sizes}")
    assert sizes[-1] < sizes[2] * 1.1 + 10


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.slow
@pytest.mark.alone
def test_attackers_do_not_slow_other_callers(tmp_path: Path, clip_bytes: Clips) -> None:
    """A 10 GB length, 50 slow uploads and malformed bodies: the p99 of others stays within 3x."""
    data = padded(clip_bytes(0), 0, size=200_000)
    answers = recorded(tmp_path, [data])
    with served(tmp_path, "--model", "recorded", "--recorded", str(answers)) as (_, address):
        port = int(address.rpartition(":")[2])
        requests = [request_bytes(data)]

        async def attack() -> None:
            async def trickle() -> None:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                head = requests[0].partition(b"\r\n\r\n")[0]
                writer.write(head + b"\r\n\r\n")
                while True:
                    writer.write(b"-")
                    await asyncio.sleep(0.2)

            async def flood() -> None:
                huge = (
                    b"POST /v1/rewards HTTP/1.1\r\nhost: a\r\ncontent-length: 10737418240\r\n\r\n"
                )
                while True:
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(huge)
                    assert b" 413 " in await reader.readline()
                    writer.close()
                    await asyncio.sleep(0.1)

            await asyncio.gather(*(trickle() for _ in range(50)), flood())

        async def work() -> tuple[list[float], list[float]]:
            calm = await measure(port, requests, clients=4, seconds=10)
            attacking = asyncio.create_task(attack())
            await asyncio.sleep(1)
            under_attack = await measure(port, requests, clients=4, seconds=10)
            assert not attacking.done()
            attacking.cancel()
            return calm, under_attack

        before, during = (float(np.quantile(found, 0.99)) for found in asyncio.run(work()))
    print(f"p99 {1000 * before:.1f} ms, under attack {1000 * during:.1f} ms")
    assert during < 3 * before


def test_a_length_of_10_gb_is_refused_before_the_body(tmp_path: Path, clip_bytes: Clips) -> None:
    """The short form with a real server: the upload is one that other tests make too."""
    data = clip_bytes(0)
    answers = recorded(tmp_path, [data])
    with served(tmp_path, "--model", "recorded", "--recorded", str(answers)) as (_, address):
        port = int(address.rpartition(":")[2])

        async def work() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"POST /v1/rewards HTTP/1.1\r\nhost: a\r\ncontent-length: 10737418240\r\n\r\n"
            )
            assert b" 413 " in await reader.readline()
            writer.close()
            assert await measure(port, [request_bytes(data)], clients=2, seconds=0.2)

        asyncio.run(work())
