"""Clips with every name that a file system allows, through the commands that meet them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from synthesise import ClipRecipe, synthesise
from unreel.benchmarks.cells import require_printable_path
from unreel.core.errors import InvalidValueError

TAKEN = [
    " a blank before, and, commas.mp4",
    "quotes \"'`.mp4",
    "%2f #?&=<b>|*$(x).mp4",
    "-rf.mp4",
    "a camera's blank \u202f.mp4",
    "joined \U0001f468\u200d\U0001f469.mp4",
    "two and e\u0301.mp4",
    "\u4e2d \U00020000 \U00030000.mp4",
    "\U000e0001 \U000f0000 \U0010fffd.mp4",
    "x" * 251 + ".mp4",
]
REFUSED = [
    b"line\nbreak.mp4",
    b"tab\t.mp4",
    b"\x1b[31mred.mp4",
    b"no \xff\xfe UTF-8.mp4",
    "turned \u202e.mp4".encode(),
]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of clips with odd names, by turns real and generated."""
    root = tmp_path_factory.mktemp("odd") / "bench"
    for number, name in enumerate([*map(os.fsencode, TAKEN), *REFUSED]):
        folder = root / ("generated/Sora" if number % 2 else "real")
        folder.mkdir(parents=True, exist_ok=True)
        clip = synthesise(ClipRecipe(n_frames=4, width=64, height=64, seed=number))
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(clip)
    return root


def test_odd_names_are_asked_scored_shown_and_exported_and_refused_ones_are_told(
    odd: Path, typed: Callable[..., Any], tmp_path: Path
) -> None:
    run = tmp_path / "runs" / 'a, "run" \U00020000'
    asked = ("eval", odd, "--protocol", "reality", "--model", "coin", "--out", run, "--json")
    told = json.loads(typed(*asked).out)
    assert told["outcome"]["answers"]["done"] == len(TAKEN)
    assert told["outcome"]["n_rejected"] == len(REFUSED)
    assert all(
        "rename the file" in one["why"] or "UTF-8" in one["why"]
        for one in told["outcome"]["rejected"]
    )
    assert json.loads(typed("score", run, "--json").out)["scores"] == told["scores"]
    assert typed("report", run, "--out", tmp_path / "page").status == 0
    (listed,) = json.loads(typed("runs", tmp_path, "--json").out)
    assert (listed["run"], listed["answered"]) == (str(run), len(TAKEN))
    assert typed("runs", "check", run).status == 0
    rows = tmp_path / "rows.jsonl"
    assert typed("export", run, "--to", "jsonl", "--out", rows).status == 0
    names = [json.loads(line)["name"] for line in rows.read_text(encoding="utf-8").splitlines()]
    assert {Path(name).name for name in names} == set(TAKEN)
    parquet = tmp_path / "rows.parquet"
    assert typed("export", run, "--to", "parquet", "--out", parquet).status == 0


def test_odd_names_are_reviewed(odd: Path, typed: Callable[..., Any], tmp_path: Path) -> None:
    clips = [path for path in odd.rglob("*") if path.is_file()]
    done = typed("review", "--model", "coin", "--protocol", "reality", "--json", "--", *clips)
    assert done.status == 0, done.err
    hardest = [path for path in clips if "\n" in path.name or "\\udc" in ascii(path)]
    pages = tmp_path / "pages"
    shown = typed("review", *hardest, "--model", "coin", "--protocol", "reality", "--out", pages)
    assert shown.status == 0, shown.err
    assert len(list(pages.rglob("evidence.html"))) == len(hardest)


@pytest.mark.parametrize("path", ["", "real"])
def test_odd_names_are_curated(
    odd: Path, path: str, typed: Callable[..., Any], tmp_path: Path
) -> None:
    pytest.importorskip("sklearn", reason="needs the extra `curate`")
    recipe = tmp_path / "recipe.toml"
    label = 'label = "real"\n' if path else ""
    recipe.write_text(
        f'name = "odd"\nseed = 1\n[source]\npath = "{odd / path}"\n{label}licence = "CC0"\n'
        '[freeze]\nversion = "1"\nlabels = []\n',
        encoding="utf-8",
    )
    done = typed("curate", "run", recipe, "--out", tmp_path / "work", "--json")
    assert done.status == 1, done.err
    side = slice(0, None, 2 if path else 1)
    quarantine = (tmp_path / "work" / "quarantine.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(quarantine) == len([*TAKEN, *REFUSED][side]) - len(TAKEN[side])
    assert typed("runs", "check", tmp_path / "work").status == 0


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_would_act_on_a_reader_is_refused(name: bytes) -> None:
    with pytest.raises(InvalidValueError, match="path cannot be"):
        require_printable_path(os.fsdecode(name))
