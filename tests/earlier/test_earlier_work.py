"""Work that an earlier release stored is gone on with: nobody is asked again, and the figures are equal.

`stored.tar.gz` was made by `make.py` before the house was rearranged; the scorecards beside it are what
that release printed. Whoever changes a figure on purpose changes them too, and says why.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from earlier.make import RUNS
from earlier.model_server import Model, serve_model

pytest.importorskip("lance", reason="needs the extra `eval`")
pytest.importorskip("pdqhash", reason="needs the extra `curate`")

HERE = Path(__file__).parent


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with tarfile.open(HERE / "stored.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "earlier"


@pytest.fixture
def model() -> Iterator[Model]:
    with serve_model() as served:
        yield served


def unreel(folder: Path, *words: str) -> tuple[Any, str]:
    code = "from unreel.cli.main import main; main()"
    command = [sys.executable, "-c", code, *words, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout), done.stderr


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def go_on(stored: Path, protocol: str, model: Model) -> Any:
    benchmark, *words = RUNS[protocol]
    asked = ["eval", benchmark, "--protocol", protocol, "--model", model.name, *words]
    printed, _ = unreel(stored, *asked, "--out", f"runs/{protocol}")
    return printed


@pytest.mark.parametrize("protocol", RUNS)
def test_a_run_asks_nothing_again_and_scores_as_before(
    protocol: str, stored: Path, model: Model
) -> None:
    printed = go_on(stored, protocol, model)

    expected = json.loads((HERE / f"{protocol}.json").read_text(encoding="utf-8"))
    assert printed["outcome"]["answers"]["done"] == 0
    assert printed["outcome"]["answers"]["already"] > 0
    assert model.asked == []
    assert printed["scores"] == expected["scores"]
    assert unreel(stored, "score", f"runs/{protocol}")[0] == expected


def test_rulings_are_not_asked_for_again(stored: Path, model: Model) -> None:
    go_on(stored, "trace", model)  # its clips lie elsewhere now
    printed, _ = unreel(stored, "score", "runs/trace", "--judge", model.name)

    expected = json.loads((HERE / "judged.json").read_text(encoding="utf-8"))
    assert model.asked == []
    assert printed["scores"] == expected["scores"]


def test_a_curation_takes_no_step_again_but_looking_at_its_files(
    stored: Path, model: Model
) -> None:
    recipe = stored / "curate.toml"
    recipe.write_text(re.sub(r"model = .*", f'model = "{model.name}"', recipe.read_text()))
    before = hashes(stored / "curation/benchmark/train")

    _, said = unreel(stored, "curate", "run", recipe.name, "--out", "curation", "--accept-leak")

    assert model.asked == []
    assert re.findall(r"^(\S+): \d+ of \d+", said, re.MULTILINE) == ["ingest"]
    assert hashes(stored / "curation/benchmark/train") == before
