"""A chat server that outlives the runs that are killed: `python chat_server.py FOLDER`.

It prints its port. `/RUN/v1/chat/completions` answers from the frames alone, and appends the question's key
to `FOLDER/RUN/asks.log` before it does. While `FOLDER/RUN/refuse` exists it refuses about half of all keys.
It listens on loopback and ends with its standard input, or after an hour.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path

LIFETIME_S = 3600
REFUSED = "01234567"
"""First digits of the keys that are refused."""


def reply(status: int, document: dict[str, object]) -> bytes:
    body = json.dumps(document).encode()
    lines = [f"HTTP/1.1 {status} Status", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def completion(body: bytes) -> bytes:
    said = f"<answer>{hashlib.sha256(body).digest()[0] % 2}</answer>"
    message = {"role": "assistant", "content": said}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    document = {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}
    return reply(200, document)


def note(folder: Path, key: str) -> None:
    log = os.open(folder / "asks.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(log, f"{key}\n".encode())
    os.close(log)


async def serve(root: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, EOFError):
        while True:
            request, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            pairs = (line.split(": ", 1) for line in lines if line)
            headers = {name.lower(): value for name, value in pairs}
            body = await reader.readexactly(int(headers["content-length"]))
            folder, key = root / request.split("/")[1], headers["idempotency-key"]
            note(folder, key)
            refused = key[0] in REFUSED and (folder / "refuse").exists()
            writer.write(
                reply(400, {"error": {"message": "not today"}}) if refused else completion(body)
            )
            await writer.drain()
    writer.close()


async def main(root: Path) -> None:
    server = await asyncio.start_server(
        lambda reader, writer: serve(root, reader, writer), "127.0.0.1", 0, limit=2**20
    )
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    parent_gone = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(parent_gone), LIFETIME_S)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
