"""Work that an earlier release stored is gone on with: nobody is asked again, and the figures are equal.

`stored.tar.gz` was made by `make.py` before the house was rearranged; the scorecards beside it are what
that release printed. Whoever changes a figure on purpose changes them too, and says why.

Changed on purpose, with the papers' texts byte for byte (decision 0017): `reality` and `realism` ask other
words now, so a run of theirs is scored and not gone on with; the judge's rulings and the storyboards were
asked with other words too, and are asked for again. `trace` shows two frames a second unless told to show 8.
Conditions have a part more, `marks`.
Scorecards have figures more, the confusion and counts of other models that answered; intervals are drawn by scene and creator.
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
REWORDED = ("reality", "realism")
N_TOLD = 4
"""Storyboards of the curation."""


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with tarfile.open(HERE / "stored.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "earlier"


@pytest.fixture
def model() -> Iterator[Model]:
    with serve_model() as served:
        yield served


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "from unreel.cli.main import main; main()"
    command = [sys.executable, "-c", code, *words, "--json"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def unreel(folder: Path, *words: str) -> tuple[Any, str]:
    done = call(folder, *words)
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout), done.stderr


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def the_same_again(protocol: str, model: Model) -> list[str]:
    benchmark, *words = RUNS[protocol]
    asked = ["eval", benchmark, "--protocol", protocol, "--model", model.name, "--trusted", *words]
    return [*asked, "--out", f"runs/{protocol}"]


def go_on(stored: Path, protocol: str, model: Model) -> Any:
    return unreel(stored, *the_same_again(protocol, model))[0]


@pytest.mark.parametrize("protocol", [name for name in RUNS if name not in REWORDED])
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


@pytest.mark.parametrize("protocol", REWORDED)
def test_a_run_of_earlier_words_is_scored_as_before_and_not_mixed_with_others(
    protocol: str, stored: Path, model: Model
) -> None:
    refused = call(stored, *the_same_again(protocol, model))

    expected = json.loads((HERE / f"{protocol}.json").read_text(encoding="utf-8"))
    assert refused.returncode == 2
    assert f"asked {protocol}@1. Name another folder: this release asks" in refused.stderr
    assert model.asked == []
    assert unreel(stored, "score", f"runs/{protocol}")[0] == expected


def test_rulings_on_earlier_words_are_asked_for_once_more(stored: Path, model: Model) -> None:
    go_on(stored, "trace", model)  # its clips lie elsewhere now
    judged = [unreel(stored, "score", "runs/trace", "--judge", model.name)[0] for _ in range(2)]

    before = json.loads((HERE / "judged.json").read_text(encoding="utf-8"))
    assert 0 < len(model.asked) == len(set(model.asked))
    assert judged[0]["scores"] == judged[1]["scores"]
    assert unexplained(judged[0]) == unexplained(before)


def unexplained(printed: Any) -> list[Any]:
    """The figures that no ruling is part of."""
    (score,) = printed["scores"]
    metrics = score["scorecard"]["metrics"]
    return [one for one in metrics if not one["name"].startswith(("explanation", "overall"))]


def test_a_curation_takes_no_step_again_but_looking_at_its_files_and_telling_of_them(
    stored: Path, model: Model
) -> None:
    recipe = stored / "curate.toml"
    recipe.write_text(re.sub(r"model = .*", f'model = "{model.name}"', recipe.read_text()))
    before = hashes(stored / "curation/benchmark/train")

    as_before = ("--set", "require_licence=false", "--set", "freeze.labels=[]")
    words = ("curate", "run", recipe.name, "--out", "curation", "--accept-leak", *as_before)
    _, said = unreel(stored, *words)

    after = hashes(stored / "curation/benchmark/train")
    assert len(model.asked) == N_TOLD
    taken = set(re.findall(r"^(\S+): \d+ of \d+", said, re.MULTILINE))
    assert "ingest" in taken <= {"ingest", "describe"}
    assert {name for name in after if after[name] != before[name]} <= {"metadata.parquet"}
    assert after.keys() == before.keys()
