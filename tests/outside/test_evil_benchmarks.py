"""Benchmarks that strangers hand over: each command that reads one harms nobody and answers the sound clip."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from synthesise import ClipRecipe, synthesise

INNOCENT = {"file_name": "innocent.mp4", "name": "innocent", "label": "real"}
HOSTILE = {"file_name": "hostile.mp4", "name": "hostile", "label": "generated", "creator": "Sora"}
COMMANDS = (
    ("benchmarks", "check", "bench"),
    ("report", "run", "--out", "page", "--media", "copy"),
    ("export", "bench", "--to", "lmms-eval", "--protocol", "reality", "--out", "kit"),
    ("curate", "run", "curate.toml", "--out", "curation", "--json"),
)
CURATION = """
name = "strangers"
[source]
path = "bench"
licence = "CC0"
[freeze]
labels = []
"""
CELLS = {
    "up": {"file_name": "../victim/holiday.mp4"},
    "up-in-the-midst": {"file_name": "innocent.mp4/../../victim/holiday.mp4"},
    "nul": {"file_name": "innocent.mp4\x00.mp4"},
    "escape": {"file_name": "\x1b]0;owned\x07\x1b[2J.mp4"},
    "right-to-left": {"name": "\u202egpj.mp4"},
    "surrogate": {"name": "\ud800.mp4"},
    "markup": {"name": "<script>document.title='owned'</script>.mp4"},
    "long": {"name": "n" * 300 + ".mp4"},
    "metadata-server": {"file_name": "http://169.254.169.254/latest/meta-data/"},
    "file-address": {"file_name": "file:///etc/passwd"},
    "store-address": {"cleaned": "s3://somebody-elses-bucket/x.mp4"},
    "number": {"label": 10**400},
    "object": {"creator": {"path": "../victim/holiday.mp4", "bytes": "AAAA"}},
    "nested": {"traces": [[[[[]]]]]},
}
FILES: dict[str, Callable[[Path], object]] = {
    "link-to-a-neighbour": lambda file: file.symlink_to("../../victim/holiday.mp4"),
    "link-to-itself": lambda file: file.symlink_to(file.name),
    "link-to-a-device": lambda file: file.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
    "folder": lambda file: file.mkdir(),
    "no-bytes": lambda file: file.touch(),
    "hole-of-1-tb": lambda file: (file.touch(), os.truncate(file, 2**40)),
}
STEERS_A_TERMINAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _require_harmless(world: Any, call: Any) -> None:
    """Run every command; the innocent clip must be answered."""
    (world.work / "curate.toml").write_text(CURATION, encoding="utf-8")
    how = ("--model", "always-real", "--protocol", "reality", "--out", "run", "--json")
    evaluated = call("eval", "bench", *how)
    assert evaluated.code in {0, 1}, evaluated.err
    assert json.loads(evaluated.out)["outcome"]["answers"]["done"] >= 1
    for said in (evaluated, *(call(*words) for words in COMMANDS)):
        assert said.code in {0, 1, 2}
        assert "Traceback" not in said.err
        assert not STEERS_A_TERMINAL.search(said.err)
    world.unharmed()
    secret = (world.victim / "holiday.mp4").read_bytes()
    for top in ("page", "kit", "curation"):
        copied = [path for path in (world.work / top).rglob("*") if path.is_file()]
        assert secret not in [path.read_bytes() for path in copied]


@pytest.fixture
def strangers(world: Any) -> Path:
    """A folder with two clips, and no table yet."""
    folder: Path = world.work / "bench"
    folder.mkdir()
    for seed, name in enumerate(("innocent.mp4", "hostile.mp4")):
        (folder / name).write_bytes(synthesise(ClipRecipe(n_frames=8, seed=seed)))
    return folder


def _write_table(folder: Path, **cells: object) -> None:
    lines = [json.dumps(row) for row in (HOSTILE | cells, INNOCENT)]
    (folder / "metadata.jsonl").write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_a_hostile_row_harms_nobody(
    cells: dict[str, object], strangers: Path, world: Any, call: Any
) -> None:
    _write_table(strangers, **cells)
    _require_harmless(world, call)


@pytest.mark.parametrize("put", FILES.values(), ids=FILES)
def test_a_hostile_file_harms_nobody(
    put: Callable[[Path], object], strangers: Path, world: Any, call: Any
) -> None:
    _write_table(strangers)
    (strangers / "hostile.mp4").unlink()
    put(strangers / "hostile.mp4")
    _require_harmless(world, call)
