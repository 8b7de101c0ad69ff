"""A model on loopback that answers the questions of every protocol, of the judge and of descriptions.

An answer follows from the bytes of its request. The server keeps the keys of its requests: a resumed job
must send none.
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
RATIONALE = (
    "- Problem Description: The hand bends.\n- Standard Adherence: It is a noticeable error."
)
SEGMENTS = (
    '[{"start": 0.25, "end": 0.7, "boxes": [], "category": "object-distortion", "confidence": 0.8, '
    '"reason": "A shape changes."}]'
)


@dataclass
class Model:
    """Port of the server and the keys of its requests."""

    port: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the model, for `--model`."""
        return f"compatible/tiny@http://127.0.0.1:{self.port}/v1"


def answer(prompt: str, chance: int) -> str:
    """Return the answer to `prompt`; `chance` follows from the whole request."""
    rating = f"<think>{RATIONALE}</think><answer>{chance % 5 + 1}</answer>"
    answers = {
        "Ground Truth:": ("0", "0.5", "1", "well")[chance % 4],
        "<coordinates>": FAKE.format(x=chance % 10) if chance % 3 else "REAL",
        "cinematic paragraph": STORIES[chance % 2],
        "Reply with a JSON list": SEGMENTS if chance % 3 else "[]",
        "previous two videos": "12"[chance % 2] if chance % 7 else "I cannot tell.",
        "- Conclusion: [": f"{RATIONALE}\n- Conclusion: Normal",
        "Problem Description": rating,
        "score": rating,
        "Score": rating,
        "": f"<answer>{chance % 2}</answer>" if chance % 7 else "I cannot tell.",
    }
    return next(text for words, text in answers.items() if words in prompt)


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
            """Print nothing."""

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
