import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.core.answer import Reply
from unreel.core.failure import Failure
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest

EXTRAS = ("cv2", "lance", "obstore", "onnxruntime", "pandas", "pdqhash", "pyarrow", "rapidocr")
EXTRAS = (*EXTRAS, "alembic", "ray", "sklearn", "sqlalchemy", "transformers")


@dataclass
class Spy:
    """A reviewer of the tests: says `text`, or does what `act` does, and counts what it was asked."""

    name: str = "spy"
    text: str = "<answer>0</answer>"
    act: Callable[[ReviewRequest], Reply | Failure] | None = None
    sheets: list[ReviewRequest] = field(default_factory=list)
    closed: int = 0
    wants = frozenset({InputKind.FRAMES})

    def box_space(self, clip_input: ClipInput) -> str:
        return "pixel"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        self.sheets.append(request)
        return Reply(text=self.text) if self.act is None else self.act(request)

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def spy() -> Spy:
    return Spy()


@pytest.fixture
def make_spy() -> type[Spy]:
    return Spy


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two real clips and two generated ones."""
    root = tmp_path_factory.mktemp("films")
    for number, side in enumerate(("real", "real", "generated/Veo", "generated/Veo")):
        path = root / side / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(synthesise(ClipRecipe(n_frames=12, seed=number)))
    return root


@pytest.fixture(scope="session")
def clip(films: Path) -> Path:
    return films / "real" / "0.mp4"


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., str]:
    """Runs lines in a Python of their own, with the extras or without them; what they print."""

    def run(lines: str, *, extras: bool = True) -> str:
        hide = "" if extras else f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
        command = [sys.executable, "-c", hide + lines]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
