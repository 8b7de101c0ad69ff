"""A provider on loopback with OpenAI's files, batches and chat completions."""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]


class BatchProvider:
    """Files and batches of a provider, and what it was asked.

    Args:
        answer: Status and body of the response to the body of one request.
        n_polls: Number of looks at a batch after which it is complete.
    """

    def __init__(self, answer: Answer, *, n_polls: int = 1) -> None:
        self._answer, self._n_polls = answer, n_polls
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.asked: Counter[str] = Counter()
        """Number of times that a question was asked, by its key."""
        self.n_asked_alone = 0
        self.events: list[str] = []
        self.on_event: Callable[[str], None] = lambda _event: None
        """Function that is called with the name of a request after it took effect, before its response."""
        self.keys: set[str | None] = set()
        self.end_status = "completed"
        self._polls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def handle(self, method: str, target: str, body: bytes, headers: Message) -> tuple[int, Any]:
        with self._lock:
            self.keys.add(headers["authorization"])
            path = urlsplit(target).path.removeprefix("/v1")
            match method, path.strip("/").split("/"):
                case "POST", ["chat", "completions"]:
                    self.n_asked_alone += 1
                    self.asked[headers["idempotency-key"]] += 1
                    return self._answer(json.loads(body))
                case "POST", ["files"]:
                    event, reply = "upload", self._store(body)
                case "POST", ["batches"]:
                    event, reply = "create", self._create(json.loads(body))
                case "GET", ["batches"]:
                    query = parse_qs(urlsplit(target).query)
                    event, reply = "list", self._list(int(query["limit"][0]), query.get("after"))
                case "GET", ["batches", name]:
                    event, reply = "poll", self._poll(name)
                case "GET", ["files", name, "content"]:
                    event, reply = "content", self.files[name]
                case _:
                    return 404, {"error": {"message": f"no {method} {path}"}}
            self.events.append(event)
        self.on_event(event)
        return 200, reply

    def _store(self, form: bytes) -> dict[str, Any]:
        assert b'name="purpose"\r\n\r\nbatch\r\n' in form
        content = re.search(rb'name="file".*?\r\n\r\n(.*)\r\n--', form, re.DOTALL)
        assert content
        name = f"file-{len(self.files)}"
        self.files[name] = content[1]
        return {"id": name, "object": "file", "purpose": "batch", "bytes": len(content[1])}

    def _create(self, request: dict[str, Any]) -> dict[str, Any]:
        assert request["endpoint"] == "/v1/chat/completions"
        assert request["completion_window"] == "24h"
        name = f"batch_{len(self.batches)}"
        lines = [json.loads(line) for line in self.files[request["input_file_id"]].splitlines()]
        for line in lines:
            assert set(line) == {"custom_id", "method", "url", "body"}
            assert len(line["custom_id"]) <= 64
            self.asked[line["custom_id"]] += 1
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "input_file_id": request["input_file_id"],
            "status": "in_progress",
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
        }
        return self.batches[name]

    def _list(self, limit: int, after: list[str] | None) -> dict[str, Any]:
        names = [*reversed(self.batches)]
        names = names[names.index(after[0]) + 1 :] if after else names
        page = names[:limit]
        data = [self.batches[name] for name in page]
        last = page[-1] if page else None
        return {"object": "list", "data": data, "last_id": last, "has_more": len(names) > limit}

    def _poll(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        self._polls[name] += 1
        if self._polls[name] == self._n_polls:
            batch["status"] = self.end_status
            if self.end_status == "failed":
                error = {"code": "token_limit_exceeded", "message": "too many tokens in line"}
                batch["errors"] = {"object": "list", "data": [error]}
            else:
                self._answer_all(name)
        return batch

    def _answer_all(self, name: str) -> None:
        """Write the results, the last ones first; an expired batch has half of them."""
        batch, answers, errors = self.batches[name], list[str](), list[str]()
        lines = self.files[batch["input_file_id"]].splitlines()
        for number, line in enumerate(reversed(lines)):
            request = json.loads(line)
            result: dict[str, Any] = {"id": f"r{number}", "custom_id": request["custom_id"]}
            if self.end_status == "expired" and number % 2:
                error = {"code": "batch_expired", "message": "not executed before the end"}
                errors.append(json.dumps(result | {"response": None, "error": error}))
                continue
            status, body = self._answer(request["body"])
            response = {"status_code": status, "request_id": "x", "body": body}
            target = answers if status == 200 else errors
            target.append(json.dumps(result | {"response": response, "error": None}))
        for kind, results in (("output_file_id", answers), ("error_file_id", errors)):
            if results:
                batch[kind] = f"file-{len(self.files)}"
                self.files[batch[kind]] = "\n".join(results).encode() + b"\n"
        counts = {"total": len(lines), "completed": len(answers), "failed": len(errors)}
        batch["request_counts"] = counts


@contextmanager
def serve_batches(provider: BatchProvider) -> Iterator[int]:
    """The port of a server of `provider`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"] or 0))
            status, document = provider.handle(self.command, self.path, body, self.headers)
            data = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Silence."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Silence: a killed client no longer reads."""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
