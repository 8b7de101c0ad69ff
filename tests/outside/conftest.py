"""A small world: a folder to work in, and beside it a neighbour whose files nobody may touch."""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.cli.main import main

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
pytest.importorskip("jinja2", reason="needs the extra eval: pip install 'unreel[eval]'")

NEIGHBOURS = (
    "holiday.mp4",
    "holiday.bin",
    "holiday",
    "letter.txt",
    "index.html",
    "README.md",
    "recipe.json",
    "metadata.parquet",
    "photos/1.jpg",
    "photos/2.jpg",
    ".ssh/authorized_keys",
)
LONG_AGO_NS = 1_000_000_000_000_000_000
Call = Callable[..., "Said"]


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    code: int
    out: str
    err: str

    def refused(self) -> None:
        """Assert that it ended with words and without a traceback."""
        assert self.code in {1, 2}, (self.code, self.out, self.err)
        assert self.err.strip()
        assert "Traceback" not in self.err


class World:
    """`work` is where commands run; `victim` is somebody else's."""

    def __init__(self, root: Path) -> None:
        self.work, self.victim = root / "work", root / "victim"
        self.work.mkdir()
        for name in NEIGHBOURS:
            path = self.victim / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"mine: {name}")
        for path in [self.victim, *self.victim.rglob("*")]:
            os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
        self._before = self._look()

    def unharmed(self) -> None:
        """Assert that the neighbour's tree is the same to the byte, the mode and the nanosecond."""
        assert self._look() == self._before

    def _look(self) -> dict[str, tuple[Any, ...]]:
        return {
            str(path): (
                (found := path.lstat()).st_mode,
                found.st_mtime_ns,
                found.st_nlink,
                found.st_ino,
                path.read_bytes() if path.is_file() else b"",
            )
            for path in [self.victim, *sorted(self.victim.rglob("*"))]
        }


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The world of one test."""
    made = World(tmp_path)
    monkeypatch.chdir(made.work)
    return made


@pytest.fixture
def call(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Types a command. What is not raised on purpose fails the test, as it would show a traceback."""

    def type_in(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["unreel", *map(str, words)])
        capsys.readouterr()
        try:
            main()
            code: object = 0
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        assert isinstance(code, int)
        return Said(code, said.out, said.err)

    return type_in


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clips, one of each side."""
    root = tmp_path_factory.mktemp("bench")
    for number, folder in enumerate(("real", "generated/Sora")):
        path = root / folder / f"c{number}.mp4"
        path.parent.mkdir(parents=True)
        recipe = ClipRecipe(width=96, height=64, n_frames=12, seed=number)
        path.write_bytes(synthesise(recipe))
    return root


@pytest.fixture(scope="session")
def finished(bench: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was really asked."""
    from unreel.core.settings import read_environment_settings
    from unreel.engine.location import StorageLocation
    from unreel.engine.storage_access import ClipAccessSettings
    from unreel.evaluation.recipe import validate_eval_recipe
    from unreel.evaluation.run_job import EvalRun, evaluate

    folder = tmp_path_factory.mktemp("finished") / "run"
    values = {"benchmark": str(bench), "protocol": "reality", "model": "always-real"}
    access = ClipAccessSettings(settings=read_environment_settings(), trusted=True)
    recipe = validate_eval_recipe(values)
    evaluate(
        EvalRun(place=StorageLocation(str(folder)), recipe=recipe, access=access, ledgers=folder)
    )
    return folder


@pytest.fixture
def run(world: World, finished: Path) -> Path:
    """A copy of the run, as a stranger might hand it over."""
    return Path(shutil.copytree(finished, world.work / "run"))
