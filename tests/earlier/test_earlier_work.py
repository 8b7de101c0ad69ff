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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from earlier.commands import HERE, call, read_json, set_model, unpack
from earlier.make import CURATE, RUNS
from earlier.model_server import Model, serve_model
from unreel import UnreelError

pytest.importorskip("lance", reason="needs the extra `eval`")
pytest.importorskip("pdqhash", reason="needs the extra `curate`")

REWORDED = ("reality", "realism")
N_TOLD = 4
"""Storyboards of the curation."""


@pytest.fixture
def model() -> Iterator[Model]:
    with serve_model() as served:
        yield served


@pytest.fixture(autouse=True)
def stored(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpack the stored work into the present folder."""
    monkeypatch.chdir(unpack(tmp_path, "stored.tar.gz"))
    set_model(model.name)


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def the_same_again(protocol: str, model: Model) -> list[str]:
    benchmark, *words = RUNS[protocol]
    asked = ["eval", benchmark, "--protocol", protocol, "--model", model.name, "--trusted", *words]
    return [*asked, "--out", f"runs/{protocol}"]


@pytest.mark.parametrize("protocol", [name for name in RUNS if name not in REWORDED])
def test_a_run_asks_nothing_again_and_scores_as_before(protocol: str, model: Model) -> None:
    printed = read_json(*the_same_again(protocol, model))

    expected = json.loads((HERE / f"{protocol}.json").read_text(encoding="utf-8"))
    assert printed["outcome"]["answers"]["done"] == 0
    assert printed["outcome"]["answers"]["already"] > 0
    assert model.asked == []
    assert printed["scores"] == expected["scores"]
    assert read_json("score", f"runs/{protocol}") == expected


@pytest.mark.parametrize("protocol", REWORDED)
def test_a_run_of_earlier_words_is_scored_as_before_and_not_mixed_with_others(
    protocol: str, model: Model
) -> None:
    refused = call(*the_same_again(protocol, model))

    expected = json.loads((HERE / f"{protocol}.json").read_text(encoding="utf-8"))
    assert isinstance(refused.exception, UnreelError)
    problem = f"the protocol {protocol}@1. Name another folder: this release uses"
    assert problem in str(refused.exception)
    assert model.asked == []
    assert read_json("score", f"runs/{protocol}") == expected


def test_rulings_on_earlier_words_are_asked_for_once_more(model: Model) -> None:
    read_json(*the_same_again("trace", model))  # its clips lie elsewhere now
    judged = [read_json("score", "runs/trace", "--judge", model.name) for _ in range(2)]

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
    model: Model,
) -> None:
    before = hashes(Path("curation/benchmark/train"))

    as_before = ("--set", "require_licence=false", "--set", "freeze.labels=[]")
    done = call(*CURATE, *as_before, "--json")

    after = hashes(Path("curation/benchmark/train"))
    assert done.exit_code in {0, 1}, done.stderr
    assert len(model.asked) == N_TOLD
    taken = set(re.findall(r"^(\S+): \d+ of \d+", done.stderr, re.MULTILINE))
    assert "ingest" in taken <= {"ingest", "describe"}
    assert {name for name in after if after[name] != before[name]} <= {"metadata.parquet"}
    assert after.keys() == before.keys()
