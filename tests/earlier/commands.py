"""Commands of `unreel` in this process, and the stored work that they continue."""

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from unreel.cli.main import unreel

HERE = Path(__file__).parent
MADE_BY = "c84a833"
"""Commit whose stored work is continued; also the folder of its archives and documents."""

TIMES = re.compile(r"(_us|_s|_at|seconds|version|elapsed|since|lock|cost|when|created)$")


def call(*words: object) -> Result:
    """Run `unreel` with `words` in the present folder."""
    return CliRunner().invoke(unreel, [str(word) for word in words])


def read_json(*words: object) -> Any:
    """Run `unreel` with `words` and `--json`; return its document."""
    done = call(*words, "--json")
    assert done.stdout, f"{words}: {done.stderr} {done.exception!r}"
    return json.loads(done.stdout)


def keep(name: str, *words: object) -> None:
    """Write the document that `unreel` prints for `words` to the folder of golden files."""
    text = json.dumps(read_json(*words), indent=1, sort_keys=True)
    Path("golden", f"{name}.json").write_text(text + "\n", encoding="utf-8")


def read_golden(name: str) -> Any:
    """Return the document that the earlier commit printed."""
    return json.loads((HERE / MADE_BY / f"{name}.json").read_text(encoding="utf-8"))


def unpack(folder: Path, archive: str, only: str = "earlier/") -> Path:
    """Unpack the files of an archive whose names match `only`; return the folder of the work."""
    with tarfile.open(HERE / archive) as opened:
        members = [each for each in opened if re.match(only, each.name)]
        opened.extractall(folder, members, filter="data")
    return folder / "earlier"


def unpack_clips(folder: Path) -> Path:
    """Unpack the drawn clips and their table; return their folder."""
    return unpack(folder, "stored.tar.gz", r"earlier/(c\d\.mp4|clips\.csv)")


def unpack_lessons(folder: Path) -> Path:
    """Unpack the benchmark that the training learns from, as `lessons`; return the folder above it."""
    root = unpack(folder, "stored.tar.gz", "earlier/curation/benchmark/")
    return (root / "curation/benchmark").rename(root / "lessons").parent


def set_model(name: str) -> None:
    """Let the recipes of the present folder name the model `name`."""
    for recipe in (Path("curate.toml"), Path("season.toml")):
        if recipe.exists():
            text = re.sub(r"compatible/tiny@[^\"]*", name, recipe.read_text(encoding="utf-8"))
            recipe.write_text(text, encoding="utf-8")


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Return one line for each value that differs, is new or is gone."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            if TIMES.search(name):
                continue
            if name not in after or name not in before:
                yield f"{path}.{name}: {'gone' if name in before else 'new'}"
            else:
                yield from differences(before[name], after[name], f"{path}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    elif before != after:
        yield f"{path}: {str(before)[:150]!r} -> {str(after)[:150]!r}"
