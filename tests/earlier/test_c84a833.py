"""Work that commit c84a833 stored is continued: nothing is asked again, and the documents are equal.

`make.py` made `c84a833/*.tar.xz` with the environment of that commit; the JSON files beside them are the documents that
it printed. The tests name each figure that a later commit changed on purpose.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from earlier.commands import (
    MADE_BY,
    call,
    differences,
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


ADDED = re.compile(r"\.(answered_by|is_estimated|altered|notes|grouped|transfer): new$")
"""Fields that later commits added."""


def unlike(name: str, printed: Any, changed: str = "^$") -> list[str]:
    """Return the differences from the document `name`, without additions and lines that match `changed`."""
    lines = differences(read_golden(name), printed)
    return [line for line in lines if not ADDED.search(line) and not re.search(changed, line)]


@pytest.fixture
def model() -> Iterator[Model]:
    with serve_model() as served:
        yield served


@pytest.fixture
def work(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the stored runs, curation and season, which is the present folder."""
    unpack_clips(tmp_path)
    monkeypatch.chdir(unpack(tmp_path, f"{MADE_BY}/work.tar.xz"))
    set_model(model.name)
    return Path()


@pytest.mark.usefixtures("work")
def test_runs_ask_nothing_again_and_have_equal_scorecards(model: Model) -> None:
    for protocol, (benchmark, *words) in RUNS.items():
        asked = ["eval", benchmark, "--protocol", protocol, "--model", model.name, "--trusted"]
        printed = read_json(*asked, *words, "--out", f"runs/{protocol}")
        assert printed["outcome"]["answers"]["done"] == 0
        assert printed["outcome"]["answers"]["already"] > 0
        assert unlike(protocol, read_json("score", f"runs/{protocol}")) == []
    judged = read_json("score", "runs/trace", "--judge", model.name)
    assert unlike("judged", judged, r"\.spent\.") == []
    assert model.asked == []


def test_a_curation_takes_no_step_again_but_listing_its_files(work: Path, model: Model) -> None:
    pytest.importorskip("pdqhash", reason="needs the extra `curate`")
    benchmark = work / "curation/benchmark/train"
    files = {path: path.read_bytes() for path in benchmark.rglob("*") if path.is_file()}

    done = call(*CURATE, "--json")

    assert done.exit_code in {0, 1}, done.stderr
    assert set(re.findall(r"^(\S+): \d+ of \d+", done.stderr, re.MULTILINE)) <= {"ingest"}
    assert model.asked == []
    moved_or_audited = (
        r"^\.(out|frozen\.(place|digest)|audit\.views)"  # scenes decide the audit now
    )
    assert unlike("curation", json.loads(done.stdout), moved_or_audited) == []
    assert {path: path.read_bytes() for path in benchmark.rglob("*") if path.is_file()} == files


@pytest.mark.usefixtures("work")
def test_a_season_asks_nothing_again_and_ranks_equally(model: Model) -> None:
    outcome = read_json(*PLAY)
    turns = [*outcome["creators"], *outcome["reviewers"]]
    assert [turn["done"] for turn in turns] == [0] * len(turns)
    assert model.asked == []
    leading = r"\.first_class"  # the first class has to be better than the coin now
    assert unlike("season", read_json(*RANK), leading) == []
    assert unlike("ablations", read_json("arena", "ablations", "season.toml")) == []


def test_campaigns_push_and_pull_nothing_again_and_read_equally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx2", reason="needs the extra `annotate`")
    unpack_clips(tmp_path)
    monkeypatch.chdir(unpack(tmp_path, f"{MADE_BY}/campaign.tar.xz"))
    contents = json.loads(Path("snapshot.json").read_text(encoding="utf-8"))
    with serve_snapshot(StudioSnapshot(**contents)) as studio:
        set_address(studio.address)
        for campaign in PUSHES:
            assert unlike(f"{campaign}-push", read_json(*push_words(campaign))) == []
            pulled = read_json("annotate", "pull", campaign, *STATE)
            assert unlike(f"{campaign}-pull", pulled) == []
    assert studio.writes == []
    for campaign, commands in READS.items():
        for (command,) in commands:
            printed = read_json("annotate", command, campaign, *WHERE)
            # The spread of strengths is estimated now, and reasons have plainer words.
            spread = r"\.believed\.|\.why: "
            assert unlike(f"{campaign}-{command}", printed, spread) == []
