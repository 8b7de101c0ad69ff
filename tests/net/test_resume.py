"""Work that commit 5462f705 stored is resumed: nothing is asked again, and the scores are equal.

The documents in `golden` of each archive are what that commit printed.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from net.commands import call, find_differences, read_golden, read_json, set_model, unpack
from net.model_server import Model, serve_model
from net.stored_work import (
    CURATE,
    PLAY,
    PUSHES,
    RANK,
    READS,
    RUNS,
    STATE,
    WHERE,
    push_words,
    set_address,
)
from net.studio_snapshot import StudioSnapshot, serve_snapshot

pytest.importorskip("lance", reason="needs the extra `eval`")

TIMED = re.compile(r"(_us|_s|_at|seconds|version|elapsed|since|lock|cost|when|created)(: |\[|$)")
"""Values that differ from run to run."""


def list_differences(name: str, printed: Any, changed: str = "^$") -> list[str]:
    """Return the differences from the document `name`, without times and lines that match `changed`."""
    lines = find_differences(read_golden(name), printed)
    return [line for line in lines if not TIMED.search(line) and not re.search(changed, line)]


@pytest.fixture
def model() -> Iterator[Model]:
    with serve_model() as served:
        yield served


@pytest.fixture
def work(tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the stored runs, curation and season, which is the present folder."""
    monkeypatch.chdir(unpack(tmp_path, "work"))
    set_model(model.name)
    return Path()


@pytest.mark.usefixtures("work")
def test_runs_of_all_protocols_ask_nothing_again_and_have_equal_scorecards(model: Model) -> None:
    assert len(RUNS) == 5
    for protocol, (benchmark, *words) in RUNS.items():
        asked = ["eval", benchmark, "--protocol", protocol, "--model", model.name, "--trusted"]
        printed = read_json(*asked, *words, "--out", f"runs/{protocol}")
        assert printed["outcome"]["answers"]["done"] == 0
        assert printed["outcome"]["answers"]["already"] > 0
        # False alarms have an exact interval, also where the bootstrap had none.
        changed = r"\.metrics\[33\]\.value\." if protocol == "locate" else "^$"
        assert list_differences(protocol, read_json("score", f"runs/{protocol}"), changed) == []
    judged = read_json("score", "runs/trace", "--judge", model.name)
    assert list_differences("judged", judged, r"\.spent\.") == []
    assert model.asked == []


def test_a_curation_repeats_no_step_but_the_list_of_its_files(work: Path, model: Model) -> None:
    pytest.importorskip("pdqhash", reason="needs the extra `curate`")
    benchmark = work / "curation/benchmark/train"
    files = {path: path.read_bytes() for path in benchmark.rglob("*") if path.is_file()}

    result = call(*CURATE, "--json")

    assert result.exit_code in {0, 1}, result.stderr
    assert set(re.findall(r"^(\S+): \d+ of \d+", result.stderr, re.MULTILINE)) <= {"ingest"}
    assert model.asked == []
    moved = r"^\.(out|frozen\.(place|digest))"
    assert list_differences("curation", json.loads(result.stdout), moved) == []
    assert {path: path.read_bytes() for path in benchmark.rglob("*") if path.is_file()} == files


@pytest.mark.usefixtures("work")
def test_a_season_asks_nothing_again_and_ranks_equally(model: Model) -> None:
    outcome = read_json(*PLAY)
    turns = [*outcome["creators"], *outcome["reviewers"]]
    assert [turn["done"] for turn in turns] == [0] * len(turns)
    assert model.asked == []
    assert list_differences("season", read_json(*RANK)) == []
    assert list_differences("ablations", read_json("arena", "ablations", "season.toml")) == []


def test_campaigns_push_and_pull_nothing_again_and_read_equally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx2", reason="needs the extra `annotate`")
    monkeypatch.chdir(unpack(tmp_path, "campaign"))
    contents = json.loads(Path("snapshot.json").read_text(encoding="utf-8"))
    with serve_snapshot(StudioSnapshot(**contents)) as studio:
        set_address(studio.address)
        for campaign in PUSHES:
            assert list_differences(f"{campaign}-push", read_json(*push_words(campaign))) == []
            pulled = read_json("annotate", "pull", campaign, *STATE)
            assert list_differences(f"{campaign}-pull", pulled) == []
    assert studio.writes == []
    for campaign, commands in READS.items():
        for (command,) in commands:
            printed = read_json("annotate", command, campaign, *WHERE)
            # The status lists the answers that cannot be used; the quality has no column `informed`.
            assert (
                list_differences(
                    f"{campaign}-{command}", printed, r"^\.unusable: new$|\.looking: gone$"
                )
                == []
            )
