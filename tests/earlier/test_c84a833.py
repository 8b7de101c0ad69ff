"""Work that commit c84a833 stored is continued: nothing is asked again, and the documents are equal.

`c84a833/*.tar.gz` were made by `make.py` with the environment of that commit; the JSON files beside them are what it
printed. Change them only on purpose, and list the change in the change log.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from earlier.commands import (
    MADE_BY,
    call,
    read_golden,
    read_json,
    set_model,
    unpack,
    unpack_clips,
)
from earlier.make import CURATE, PLAY, RANK, RUNS
from earlier.make_campaign import PUSHES, READS, STATE, WHERE, push_words, set_address
from earlier.model_server import Model, serve_model
from earlier.studio_snapshot import StudioSnapshot, serve_snapshot

pytest.importorskip("lance", reason="needs the extra `eval`")


@pytest.fixture
def model() -> Iterator[Model]:
    with serve_model() as served:
        yield served


@pytest.fixture
def work(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the stored runs, curation and season, which is the present folder."""
    unpack_clips(tmp_path)
    monkeypatch.chdir(unpack(tmp_path, f"{MADE_BY}/work.tar.gz"))
    set_model(model.name)
    return Path()


@pytest.mark.usefixtures("work")
def test_runs_ask_nothing_again_and_have_equal_scorecards(model: Model) -> None:
    for protocol, (benchmark, *words) in RUNS.items():
        asked = ["eval", benchmark, "--protocol", protocol, "--model", model.name, "--trusted"]
        printed = read_json(*asked, *words, "--out", f"runs/{protocol}")
        expected = read_golden(protocol)
        assert printed["outcome"]["answers"]["done"] == 0
        assert printed["outcome"]["answers"]["already"] > 0
        assert printed["scores"] == expected["scores"]
        assert read_json("score", f"runs/{protocol}") == expected
    assert read_json("score", "runs/trace", "--judge", model.name) == read_golden("judged")
    assert model.asked == []


def test_a_curation_takes_no_step_again_but_listing_its_files(work: Path, model: Model) -> None:
    pytest.importorskip("pdqhash", reason="needs the extra `curate`")
    benchmark = work / "curation/benchmark"
    files = {path: path.read_bytes() for path in benchmark.rglob("*") if path.is_file()}

    done = call(*CURATE, "--json")

    assert done.exit_code in {0, 1}, done.stderr
    assert set(re.findall(r"^(\S+): \d+ of \d+", done.stderr, re.MULTILINE)) <= {"ingest"}
    assert model.asked == []
    assert json.loads(done.stdout) == read_golden("curation")
    assert {path: path.read_bytes() for path in benchmark.rglob("*") if path.is_file()} == files


@pytest.mark.usefixtures("work")
def test_a_season_asks_nothing_again_and_ranks_equally(model: Model) -> None:
    outcome = read_json(*PLAY)
    turns = [*outcome["creators"], *outcome["reviewers"]]
    assert [turn["done"] for turn in turns] == [0] * len(turns)
    assert model.asked == []
    assert read_json(*RANK) == read_golden("season")
    assert read_json("arena", "ablations", "season.toml") == read_golden("ablations")


def test_campaigns_push_and_pull_nothing_again_and_read_equally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx2", reason="needs the extra `annotate`")
    unpack_clips(tmp_path)
    monkeypatch.chdir(unpack(tmp_path, f"{MADE_BY}/campaign.tar.gz"))
    contents = json.loads(Path("snapshot.json").read_text(encoding="utf-8"))
    with serve_snapshot(StudioSnapshot(**contents)) as studio:
        set_address(studio.address)
        for campaign in PUSHES:
            assert read_json(*push_words(campaign)) == read_golden(f"{campaign}-push")
            assert read_json("annotate", "pull", campaign, *STATE) == read_golden(
                f"{campaign}-pull"
            )
    assert studio.writes == []
    for campaign, commands in READS.items():
        for (command,) in commands:
            printed = read_json("annotate", command, campaign, *WHERE)
            assert printed == read_golden(f"{campaign}-{command}")
