"""Commands of `unreel` in this process, and the archives of stored work."""

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from unreel.cli.main import unreel

HERE = Path(__file__).parent
MADE_BY = "5462f705"
"""Commit whose stored work is resumed; also the folder of its archives."""


def call(*words: object) -> Result:
    """Run `unreel` with `words` in the present folder."""
    return CliRunner().invoke(unreel, [str(word) for word in words])


def read_json(*words: object) -> Any:
    """Run `unreel` with `words` and `--json`; return its document."""
    result = call(*words, "--json")
    assert result.stdout, f"{words}: {result.stderr} {result.exception!r}"
    return json.loads(result.stdout)


def read_golden(name: str) -> Any:
    """Return the document that the earlier commit printed, from the folder `golden`."""
    return json.loads(Path("golden", f"{name}.json").read_text(encoding="utf-8"))


def unpack(folder: Path, archive: str) -> Path:
    """Unpack the clips and an archive of stored work into `folder`; return it."""
    for name in {"clips", archive}:
        with tarfile.open(HERE / MADE_BY / f"{name}.tar.xz") as opened:
            opened.extractall(folder, filter="data")
    return folder


def set_model(name: str) -> None:
    """Let the recipes of the present folder name the model `name`."""
    for recipe in (Path("curate.toml"), Path("season.toml")):
        if recipe.exists():
            text = re.sub(r"compatible/tiny@[^\"]*", name, recipe.read_text(encoding="utf-8"))
            recipe.write_text(text, encoding="utf-8")


def find_differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield one line for each value that differs, is new or is gone."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            if name not in after or name not in before:
                yield f"{path}.{name}: {'gone' if name in before else 'new'}"
            else:
                yield from find_differences(before[name], after[name], f"{path}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from find_differences(one, other, f"{path}[{index}]")
    elif isinstance(before, list) and isinstance(after, list):
        common = zip(before, after, strict=False)
        index = next((i for i, (a, b) in enumerate(common) if a != b), min(len(before), len(after)))
        yield f"{path}: {len(before)} -> {len(after)} entries"
        yield f"{path}[{index}]: {_quote(before[index:])} -> {_quote(after[index:])}"
    elif before != after:
        yield f"{path}: {_quote(before)} -> {_quote(after)}"


def _quote(value: Any) -> str:
    if isinstance(value, list):
        value = value[0] if value else "(end)"
    return repr(str(value)[:150])
