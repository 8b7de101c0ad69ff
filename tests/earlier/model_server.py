"""A model on loopback that answers every instrument, the judge and the storyteller from what it is asked.

It is the model behind the stored work of an earlier release in this folder, and it counts: a resumed
job must ask it nothing.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STORIES = (
    "A red ball bounces across the floor of an empty room, and its thuds echo from the walls.",
    "A cook chops carrots on a wooden board, then stirs a soup, and finally tastes it with a spoon.",
)
FAKE = (
    "FAKE\n<coordinates>[{x}, 20, 80, 70]</coordinates>\n<start_time>0.{x}</start_time>\n"
    "<explanation>A shape changes without a cause.</explanation>"
)


@dataclass
class Model:
    """Where it listens and what it was asked."""

    port: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """As `--model` takes it."""
        return f"compatible/tiny@http://127.0.0.1:{self.port}/v1"


def answer(prompt: str, chance: int) -> str:
    """What it says to `prompt`; `chance` follows from all that it was shown."""
    if "Ground Truth:" in prompt:
        return ("0", "0.5", "1", "well")[chance % 4]
    if "<coordinates>" in prompt:
        return "REAL" if chance % 3 == 0 else FAKE.format(x=chance % 10)
    if "cinematic paragraph" in prompt:
        return STORIES[chance % 2]
    if "Problem Description" in prompt or "score" in prompt.lower():
        return f"<think>It bends.</think><answer>{chance % 5 + 1}</answer>"
    return f"<answer>{chance % 2}</answer>" if chance % 7 else "I cannot tell."


@contextmanager
def serve_model() -> Iterator[Model]:
    """Serve on a free port of loopback, as long as the context lasts."""
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            content = json.loads(body)["messages"][-1]["content"]
            texts = [content] if isinstance(content, str) else [p.get("text", "") for p in content]
            model.asked.append(self.headers.get("idempotency-key", ""))
            said = answer("\n".join(texts), hashlib.sha256(body).digest()[0])
            message = {"role": "assistant", "content": said}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            reply = {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
