"""A chat server on loopback that answers every request after a fixed delay; it never looks inside."""

import asyncio
import json
import sys

_REPLY = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "still",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "<think>x</think><answer>0</answer>"},
            }
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 12, "total_tokens": 912},
    }
).encode()
_MODELS = json.dumps({"object": "list", "data": [{"id": "still", "object": "model"}]}).encode()


async def serve(delay_s: float) -> None:
    """Serve until standard input ends, having printed the port."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                asks = head.startswith(b"POST")
                length = next(
                    (
                        int(line.split(b":")[1])
                        for line in head.split(b"\r\n")
                        if line.lower().startswith(b"content-length:")
                    ),
                    0,
                )
                while length:
                    length -= len(await reader.read(min(length, 1 << 20)))
                if asks:
                    await asyncio.sleep(delay_s)
                body = _REPLY if asks else _MODELS
                status = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
                writer.write(status + str(len(body)).encode() + b"\r\n\r\n" + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
