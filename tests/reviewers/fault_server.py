"""A chat server that fails on purpose: `python fault_server.py` prints its port and serves.

The address says what happens: `/FAULT/PERCENT/RUN/v1/chat/completions` answers that share of the
requests of RUN with FAULT, the rest well. `GET /stats/RUN` tells what RUN asked. It listens on
loopback only and ends with its standard input, or after ten minutes.
"""

import asyncio
import contextlib
import hashlib
import json
import random
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field

LIFETIME_S = 600
LONGEST_FAULT_S = 30
HUGE_BYTES = 400 * 1024 * 1024
GOOD_AFTER_S = 0.005
PAGE = b"<html><body><h1>Bad gateway</h1></body></html>"


@dataclass
class Stats:
    """What one run asked, as the server saw it. Instants are of the machine's monotonic clock."""

    n_requests: int = 0
    n_faults: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    first_at_s: dict[str, float] = field(default_factory=dict)
    bodies: dict[str, list[str]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    path: str = ""
    body: str = ""


RUNS: dict[str, Stats] = defaultdict(Stats)
CHANCE: dict[str, random.Random] = {}


def completion(message: dict[str, object], **choice: object) -> bytes:
    body = {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, **choice}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
    }
    return json.dumps(body).encode()


GOOD = completion({"content": "<answer>0</answer>"}, finish_reason="stop")


def head(status: int, size: int | None, *extra: str, kind: str = "application/json") -> bytes:
    length = f"Content-Length: {size}" if size is not None else "Transfer-Encoding: chunked"
    lines = [f"HTTP/1.1 {status} Status", f"Content-Type: {kind}", length, *extra]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(status: int, body: bytes, *extra: str, kind: str = "application/json") -> bytes:
    return head(status, len(body), *extra, kind=kind) + body


def error(status: int, words: str, *extra: str) -> bytes:
    return whole(status, json.dumps({"error": {"message": words}}).encode(), *extra)


def plain_fault(fault: str, key: str) -> bytes | None:
    """The faults that are one well-framed response."""
    return {
        "429": error(429, "slow down"),
        "429-wait": error(429, "slow down", "Retry-After: 1"),
        "429-long": error(429, "slow down", "Retry-After: 90"),
        "500": error(500, "oops"),
        "503": error(503, "overloaded"),
        "400": error(400, "image is too large"),
        "401": error(401, f"Incorrect API key provided: {key}"),
        "truncated": whole(200, GOOD[: len(GOOD) // 2]),
        "html": whole(200, PAGE, kind="text/html"),
        "null-choices": whole(200, b'{"choices": null}'),
        "refusal": whole(200, completion({"content": None, "refusal": "I cannot help"})),
        "empty": whole(200, completion({"content": ""}, finish_reason="stop")),
        "thought-out": whole(200, completion({"content": ""}, finish_reason="length")),
        "echo": whole(200, completion({"content": f"your key is {key}"})),
        "gzip": whole(200, GOOD, "Content-Encoding: gzip"),
        "declared-huge": head(200, HUGE_BYTES),
        "cookie": whole(200, GOOD, "Set-Cookie: visitor=1; Path=/"),
        "odd-words": whole(500, b"oops", kind="text/plain; charset=rot13"),
        "moved": whole(307, b"", "Location: http://127.0.0.1:9/elsewhere"),
    }.get(fault)


async def send_fault(fault: str, key: str, writer: asyncio.StreamWriter) -> bool:
    """Play `fault`; false when the connection cannot be used again."""
    plain = plain_fault(fault, key)
    if plain is not None:
        writer.write(plain)
        await writer.drain()
        return fault != "declared-huge"
    ends_at_s = time.monotonic() + LONGEST_FAULT_S
    if fault == "drip":
        writer.write(head(200, len(GOOD)))
        for byte in GOOD:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.1)
    elif fault == "hang":
        while time.monotonic() < ends_at_s and not writer.transport.is_closing():
            await asyncio.sleep(0.05)
    elif fault == "cut":
        writer.write(head(200, len(GOOD)) + GOOD[:50])
        await writer.drain()
    elif fault == "huge":
        chunk = b" " * 65536
        writer.write(head(200, None))
        for _ in range(HUGE_BYTES // len(chunk)):
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
            if writer.transport.is_closing():
                break
    else:
        raise ValueError(fault)
    return False


async def answer(
    path: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter
) -> bool:
    if path.startswith("/stats/"):
        report = json.dumps(asdict(RUNS[path.removeprefix("/stats/")])).encode()
        writer.write(whole(200, report))
        return True
    _, fault, percent, run, *_ = path.split("/")
    stats = RUNS[run]
    question = headers.get("idempotency-key", "")
    stats.n_requests += 1
    stats.first_at_s.setdefault(question, time.monotonic())
    stats.bodies.setdefault(question, []).append(hashlib.sha256(body).hexdigest())
    stats.path = path
    stats.headers = headers
    stats.body = body[:4000].decode(errors="replace")
    stats.in_flight += 1
    stats.most_in_flight = max(stats.most_in_flight, stats.in_flight)
    try:
        if CHANCE.setdefault(run, random.Random(7)).random() * 100 < float(percent):
            stats.n_faults += 1
            key = headers.get("authorization", "").removeprefix("Bearer ")
            return await send_fault(fault, key, writer)
        await asyncio.sleep(GOOD_AFTER_S)
        writer.write(whole(200, GOOD))
        return True
    finally:
        stats.in_flight -= 1


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, EOFError, asyncio.LimitOverrunError):
        while True:
            request, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.split(": ", 1) for line in lines if line)
            headers = {name.lower(): value for name, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            if not await answer(request.split(" ")[1], headers, body, writer):
                break
            await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    parent_gone = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(parent_gone), LIFETIME_S)


if __name__ == "__main__":
    asyncio.run(main())
