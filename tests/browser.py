"""A real browser for the tests of pages."""

import asyncio
import functools
import http.server
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
)
PATIENCE_MS = 60_000
SERIOUS = ("serious", "critical")


class Watched:
    """A browser page and all that it complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        page.on("dialog", self._dialogue)
        page.on("request", self._asked)

    def open(self, file: Path) -> Any:
        """The page of that file, from disk."""
        self.page.goto(file.resolve().as_uri())
        return self.page

    def open_at(self, url: str) -> Any:
        """The page at that address."""
        self.page.goto(url)
        return self.page

    def wait(self, expression: str) -> Any:
        """What `expression` gives once it is true; the page's policy forbids Playwright's own way."""
        deadline_s = time.monotonic() + PATIENCE_MS / 1000
        while not (value := self.page.evaluate(expression)):
            assert time.monotonic() < deadline_s, f"never came true: {expression}"
            self.page.wait_for_timeout(50)
        return value

    def violations(self) -> list[str]:
        """What axe-core finds serious or critical, each with the place."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
            for one in found
            if one["impact"] in SERIOUS
            for node in one["nodes"]
        ]

    def _heard(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"console {message.type}: {message.text}")

    def _dialogue(self, dialogue: Any) -> None:
        self.complaints.append(f"dialogue: {dialogue.message}")
        dialogue.dismiss()

    def _asked(self, request: Any) -> None:
        # Chromium's own 127.0.0.1 and file: are the tests'; anything else left the machine.
        if not request.url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:")):
            self.complaints.append(f"request: {request.url}")


@pytest.fixture(scope="session")
def browser() -> Iterator[tuple[Any, asyncio.AbstractEventLoop]]:
    """The browser of this test process, and the event loop of Playwright, which is not left running."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on this machine: install Debian's package of that name")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield launched, loop
        asyncio._set_running_loop(loop)
        launched.close()


@pytest.fixture
def chromium(browser: tuple[Any, asyncio.AbstractEventLoop]) -> Iterator[Any]:
    """A browser without pages. Playwright's event loop runs: call nothing that runs another beside it."""
    launched, loop = browser
    asyncio._set_running_loop(loop)
    yield launched
    for context in launched.contexts:
        context.close()
    asyncio._set_running_loop(None)


@pytest.fixture
def watched(chromium: Any) -> Iterator[Watched]:
    """A page of 1280 x 900 that fails the test when it logs an error, throws, or asks the network."""
    page = Watched(chromium.new_page(viewport={"width": 1280, "height": 900}))
    yield page
    assert page.complaints == []


@pytest.fixture
def narrow(chromium: Any) -> Iterator[Watched]:
    """The same, 360 pixels wide and dark, as on a phone at night."""
    page = Watched(chromium.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark"))
    yield page
    assert page.complaints == []


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the parent's name
        """Say nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Serves a folder over HTTP on a free port; gives its address, which ends with a slash."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def start(folder: Path) -> str:
        handler = functools.partial(_Quiet, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
