"""A desk in process, with clips that are synthesised and answers that are scripted."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from chat import says, serve_chat
from scripted import ANSWERS
from synthesise import ClipRecipe, synthesise

fastapi = pytest.importorskip("fastapi", reason="needs the extra desk: pip install 'unreel[desk]'")
from fastapi.testclient import TestClient  # noqa: E402

from unreel.desk.app import DeskService, create_desk_app  # noqa: E402
from unreel.desk.settings import DeskSettings, ReviewerSet  # noqa: E402
from unreel.report.review import file_review  # noqa: E402


@pytest.fixture(scope="session")
def clip_bytes() -> Callable[[int], bytes]:
    """Small clips of one second, by seed."""
    made: dict[int, bytes] = {}

    def make(seed: int = 0) -> bytes:
        if seed not in made:
            made[seed] = synthesise(ClipRecipe(n_frames=8, rate=Fraction(8), seed=seed))
        return made[seed]

    return make


class Desk:
    """An open desk, and a browser-like client with a session."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.service: DeskService = client.app.state.desk  # type: ignore[attr-defined]
        self.client.headers["sec-fetch-site"] = "same-origin"

    def sign_in(self) -> None:
        assert self.client.get(self.service.access.link).status_code == 200

    @property
    def token(self) -> str:
        text = self.client.get("/").text
        return text.split('name="form_token" value="')[1].split('"')[0]

    def drop(self, *clips: tuple[str, bytes], **fields: str) -> Any:
        data = {"form_token": self.token, "reviewers": next(iter(self.service.sets)), **fields}
        files = [("clips", clip) for clip in clips]
        return self.client.post("/cases", data=data, files=files)

    def wait(self, seconds: float = 60) -> list[Any]:
        """All cases, once each has ended."""
        end_s = time.monotonic() + seconds
        while any(case.stage not in {"done", "failed"} for case in self.service.store.select()):
            assert time.monotonic() < end_s, "the cases do not end"
            time.sleep(0.05)
        return self.service.store.select()


@pytest.fixture(autouse=True)
def no_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search for no marks in the picture: this would load a text recogniser."""
    whole = file_review.check_file_origin
    monkeypatch.setattr(
        file_review,
        "check_file_origin",
        lambda clip, *, settings, **keys: whole(
            clip, settings=replace(settings, drawn=True), **keys
        ),
    )


@pytest.fixture
def open_desk(tmp_path: Path) -> Callable[..., Any]:
    """Opens a desk with settings; a session is open unless `signed_in` is False."""

    @contextmanager
    def start(
        *, signed_in: bool = True, client: tuple[str, int] = ("127.0.0.1", 1), **settings: Any
    ) -> Iterator[Desk]:
        given = DeskSettings(**{"cases": tmp_path / "desk", **settings})
        with TestClient(create_desk_app(given, trusted=True), client=client) as http:
            desk = Desk(http)
            if signed_in:
                desk.sign_in()
            yield desk

    return start


@pytest.fixture
def model() -> Iterator[tuple[ReviewerSet, list[bytes]]]:
    """A reviewer set whose model answers on loopback, and the questions that reached it."""
    asked: list[bytes] = []

    def reply(body: bytes, _headers: Any) -> Any:
        asked.append(body)
        return says(ANSWERS["trace" if b"coordinates" in body else "realism"])

    with serve_chat(reply) as port:
        yield ReviewerSet(name="One", models=(f"vllm/qwen3-vl@http://127.0.0.1:{port}/v1",)), asked
