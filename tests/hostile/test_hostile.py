"""Folders that strangers hand over, through every command that reads one."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hostile.cases import HOSTILE, INNOCENT, Case, benchmark_cases, run_cases
from hostile.pen import MOST_SECONDS, Ended, Pen
from synthesise import ClipRecipe, synthesise

MOST_MB = 1024
ASKED_WRONGLY = 2
OURS = {"curation", "err", "kit", "out", "page", "rows.jsonl", "run"}
"""What the commands below may write; all else must stay as it was."""
CURATION = """
name = "strangers"

[source]
path = "bench"
licence = "CC0"

[freeze]
labels = []
"""
_HARMLESS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _chosen(cases: Iterable[Case]) -> list[Any]:
    """All of them, fifteen of sixteen among the slow tests."""
    return [
        pytest.param(case, id=case.name, marks=(pytest.mark.slow,) if number % 16 else ())
        for number, case in enumerate(cases)
    ]


@pytest.fixture(scope="module")
def pen() -> Iterator[Pen]:
    with Pen() as started:
        yield started


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, pen: Pen) -> Path:
    """A folder with a benchmark of two clips, a run over it, a recipe, and somebody's private files."""
    root = tmp_path_factory.mktemp("honest")
    for folder in ("bench", "victim"):
        (root / folder).mkdir()
    (root / "bench" / "innocent.mp4").write_bytes(synthesise(ClipRecipe(n_frames=8, seed=1)))
    (root / "bench" / "hostile.mp4").write_bytes(synthesise(ClipRecipe(n_frames=8, seed=2)))
    lines = [json.dumps(row) for row in (HOSTILE, INNOCENT)]
    (root / "bench" / "metadata.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (root / "victim" / "holiday.mp4").write_bytes(synthesise(ClipRecipe(n_frames=8, seed=3)))
    (root / "victim" / "notes.txt").write_text("file_name,label\nsecret,real\n", encoding="utf-8")
    (root / "curate.toml").write_text(CURATION, encoding="utf-8")
    assert pen.run(*_EVAL, cwd=root).status == 0
    return root


_EVAL = (
    "eval",
    "bench",
    "--model",
    "always-real",
    "--protocol",
    "reality",
    "--out",
    "run",
    "--json",
)
_ON_BENCHMARKS = (
    _EVAL,
    ("benchmarks", "check", "bench"),
    ("report", "run", "--out", "page", "--media", "copy"),
    ("export", "bench", "--to", "lmms-eval", "--protocol", "reality", "--out", "kit"),
    ("curate", "run", "curate.toml", "--out", "curation", "--json"),
)
_ON_RUNS = (
    ("score", "run"),
    ("report", "run", "--out", "page", "--media", "copy"),
    ("export", "run", "--to", "jsonl", "--out", "rows.jsonl"),
    ("runs", "."),
    _EVAL,
)


@pytest.mark.parametrize("case", _chosen(benchmark_cases()))
def test_a_strangers_benchmark_harms_nobody(
    case: Case, honest: Path, pen: Pen, tmp_path: Path
) -> None:
    root = _copy(honest, tmp_path)
    shutil.rmtree(root / "run")
    case.lay(root / "bench")

    evaluated, *_ = _run_all(pen, root, _ON_BENCHMARKS)

    if case.answers_innocent:
        assert evaluated.status in {0, 1}, evaluated.err
        assert json.loads(evaluated.out)["outcome"]["answers"]["done"] >= 1
    assert not _mentions_secret(root)


@pytest.mark.parametrize("case", _chosen(run_cases()))
def test_a_strangers_run_harms_nobody(case: Case, honest: Path, pen: Pen, tmp_path: Path) -> None:
    root = _copy(honest, tmp_path)
    case.lay(root / "run")

    _run_all(pen, root, _ON_RUNS)

    assert not _mentions_secret(root)


def test_a_pen_notices_harm(honest: Path, pen: Pen, tmp_path: Path) -> None:
    """The control: a file that a command writes beside its target is seen."""
    root = _copy(honest, tmp_path)
    before = _state(root)
    assert pen.run("report", "run", "--out", "victim/page", cwd=root).status == 0
    assert _state(root) != before


def test_there_are_two_hundred_and_more() -> None:
    cases = [*benchmark_cases(), *run_cases()]
    assert len({case.name for case in cases}) == len(cases) >= 200


def _copy(honest: Path, into: Path) -> Path:
    return shutil.copytree(honest, into / "here", symlinks=True)


def _run_all(pen: Pen, root: Path, commands: Sequence[Sequence[str]]) -> list[Ended]:
    before = _state(root)
    ended = []
    for command in commands:
        end = pen.run(*command, cwd=root)
        _check(command[0], end)
        ended.append(end)
    assert _state(root) == before, "written outside"
    return ended


def _check(command: str, end: Ended) -> None:
    told = f"{command}: status {end.status}, {end.peak_mb:.0f} MB, {end.seconds:.1f} s\n{end.err[-3000:]}"
    assert "Traceback" not in end.err, told
    assert end.status in {0, 1, 2}, told
    assert end.status != ASKED_WRONGLY or end.err.strip(), told
    assert end.peak_mb < MOST_MB, told
    assert end.seconds < MOST_SECONDS, told
    assert not _HARMLESS.search(end.err), told


def _state(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything below `root` that no command may touch."""
    found: dict[str, tuple[object, ...]] = {}
    for top in sorted(root.iterdir()):
        if top.name in OURS:
            continue
        for path in (top, *sorted(top.rglob("*"))):
            facts = path.lstat()
            data = b""
            if path.is_file() and not path.is_symlink() and facts.st_size < 2**20:
                data = path.read_bytes()
            found[str(path.relative_to(root))] = (
                facts.st_mode,
                facts.st_size,
                facts.st_mtime_ns,
                hashlib.sha256(data).hexdigest(),
            )
    return found


def _mentions_secret(root: Path) -> bool:
    """Whether bytes of the private folder turn up in what was written for others."""
    secret = (root / "victim" / "holiday.mp4").read_bytes()
    written = (path for top in ("page", "kit", "curation") for path in (root / top).rglob("*"))
    return any(path.is_file() and path.read_bytes() == secret for path in written)
