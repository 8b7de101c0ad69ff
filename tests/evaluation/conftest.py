import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from chat import Reply, refuses, says, serve_chat
from synthesise import ClipRecipe, synthesise


@dataclass
class Server:
    """A chat server on loopback that says `text`, or refuses with `status`; it keeps what it was asked."""

    text: str = "<answer>0</answer>"
    status: int = 200
    prompt_tokens: int = 100
    answering: object = "tiny"
    """Model that its responses name."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    port: int = 0

    @property
    def model(self) -> str:
        return f"compatible/tiny@http://127.0.0.1:{self.port}/v1"


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    def reply(body: bytes, headers: Message) -> Reply:
        state.asked.append(json.loads(body))
        state.keys.add(headers.get("authorization", ""))
        good = state.status == 200
        return (
            says(state.text, prompt_tokens=state.prompt_tokens, model=state.answering)
            if good
            else refuses(state.status, "no")
        )

    with serve_chat(reply) as state.port:
        yield state


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four real clips, two of each of two creators, in four groups; half have sound."""
    root = tmp_path_factory.mktemp("clips")
    lines = ["file,label,generator,group"]
    for number in range(8):
        creator = ["", "", "Sora", "Veo"][number % 4]
        name = f"c{number}.mp4"
        tone = 440 if number < 4 else None
        (root / name).write_bytes(synthesise(ClipRecipe(n_frames=12, seed=number, tone_hz=tone)))
        label = "generated" if creator else "real"
        lines.append(f"{name},{label},{creator},g{number // 4}{number % 2}")
    (root / "manifest.csv").write_text("\n".join(lines), encoding="utf-8")
    return root / "manifest.csv"


@pytest.fixture
def start(clips: Path, tmp_path: Path) -> Callable[..., Any]:
    """Makes a run over the clips."""
    from unreel.core.settings import read_environment_settings
    from unreel.engine.location import StorageLocation
    from unreel.engine.storage_access import ClipAccessSettings
    from unreel.evaluation.recipe import validate_eval_recipe
    from unreel.evaluation.run_job import EvalRun

    def make(*, out: str = "run", benchmark: Path = clips, **settings: Any) -> EvalRun:
        values = {"benchmark": str(benchmark), "protocol": "reality", "model": "coin", **settings}
        folder = tmp_path / out
        return EvalRun(
            place=StorageLocation(str(folder)),
            recipe=validate_eval_recipe(values),
            access=ClipAccessSettings(settings=read_environment_settings(), trusted=True),
            ledgers=folder,
        )

    return make


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


@pytest.fixture
def typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    """Types a command in this process; whatever else than an exit leaves it is a traceback."""

    from unreel.cli.main import main

    monkeypatch.setattr(
        "unreel.cli.main.install_signal_handlers", lambda: None
    )  # they are pytest's here

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["unreel", *map(str, words)])
        status: Any = 0
        streams = sys.stdout, sys.stderr
        try:
            main()
        except SystemExit as end:
            status = end.code
        finally:
            for guarded in {sys.stdout, sys.stderr} - {*streams}:
                guarded.flush()
                guarded.detach()
            sys.stdout, sys.stderr = streams
        told = capsys.readouterr()
        return Said(int(status or 0), told.out, told.err)

    return run
