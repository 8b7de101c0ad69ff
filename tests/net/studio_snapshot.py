"""The contents of a Label Studio, served again without it.

A resumed push or pull must change nothing, so every request that is not a read is counted and refused.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class StudioSnapshot:
    """Projects, tasks, accounts and storages as the server prints them."""

    pages: dict[str, Any]
    """Documents by path."""
    tasks: dict[str, list[dict[str, Any]]]
    """Tasks with their annotations, by the number of the project."""
    storages: dict[str, list[Any]]
    writes: list[str] = field(default_factory=list)
    address: str = ""

    def read(self, path: str, query: dict[str, list[str]]) -> Any:
        """Return the document at `path`; `None` if there is none."""
        project = query.get("project", [""])[0]
        if path == "/api/storages/localfiles":
            return self.storages[project]
        if path != "/api/tasks/":
            return self.pages.get(path)
        found = self.tasks[project]
        for item in json.loads(query.get("query", ["{}"])[0]).get("filters", {}).get("items", []):
            column, keep = item["filter"].rpartition(":")[2], _FILTERS[item["operator"]]
            found = [task for task in found if keep(task[column], item["value"])]
        return {"tasks": found, "total": len(found)}


_FILTERS: dict[str, Callable[[Any, Any], bool]] = {
    "greater": lambda cell, value: cell > value,
    "in_list": lambda cell, value: cell in value,
}


@contextmanager
def serve_snapshot(snapshot: StudioSnapshot) -> Iterator[StudioSnapshot]:
    """Serve `snapshot` on a free port of loopback, as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            document = snapshot.read(parts.path, parse_qs(parts.query))
            self._reply(404 if document is None else 200, document)

        def __getattr__(self, name: str) -> object:
            if name.startswith("do_"):
                return self._refuse
            raise AttributeError(name)

        def _refuse(self) -> None:
            snapshot.writes.append(f"{self.command} {self.path}")
            self._reply(405, {})

        def _reply(self, status: int, document: object) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    snapshot.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield snapshot
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
