"""`unreel reward watch`: a table, JSON, a page and a status."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from reward_logs import fall, make_log
from unreel.cli.reward import watch


def run(*arguments: object) -> Result:
    return CliRunner().invoke(watch, [str(argument) for argument in arguments])


def write_log(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("logs") / "honest.jsonl", make_log(0))


@pytest.fixture(scope="module")
def hacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("logs") / "hacked.jsonl", make_log(0, fall))


def test_an_honest_log_ends_with_status_0(honest: Path) -> None:
    result = run(honest)
    assert result.exit_code == 0
    assert "alarms: none (" in result.output
    assert "of 11 guards measured)" in result.output
    assert "%)" in result.output  # the level of an interval
    assert "held-out\tno\t" in result.output


def test_an_alarm_is_printed_with_its_step_and_ends_with_status_1(hacked: Path) -> None:
    result = run(hacked)
    assert result.exit_code == 1
    assert "alarms: held-out" in result.output
    assert "held-out\tstep " in result.output


def test_json_has_every_guard_with_its_interval_and_n(hacked: Path) -> None:
    result = run(hacked, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert document["alarms"] == ["held-out"]
    held_out = document["guards"][0]
    assert held_out["estimate"]["low"] < held_out["estimate"]["high"] < 0
    assert held_out["estimate"]["n"] > 0
    assert len(document["guards"]) == 11


def test_the_page_shows_guards_and_curves_and_escapes_the_name(tmp_path: Path) -> None:
    log = write_log(tmp_path / "<b>run.jsonl", make_log(0, fall))
    result = run(log, "--out", tmp_path / "page")
    page = (tmp_path / "page" / "guards.html").read_text(encoding="utf-8")
    assert result.exit_code == 1
    assert "&lt;b&gt;run.jsonl" in page
    assert "<polyline" in page
    assert "1 of 11 guards raise an alarm" in page


def test_the_page_of_a_log_without_rewards_says_so(tmp_path: Path) -> None:
    log = write_log(tmp_path / "empty.jsonl", [])
    result = run(log, "--out", tmp_path / "page")
    assert result.exit_code == 0
    assert "no guard could be measured yet" in result.output
    page = (tmp_path / "page/guards.html").read_text()
    assert "No step has trained and held-out rewards" in page
    assert "No guard could be measured yet" in page
    assert "Bare labels" in page


def test_a_fact_that_never_changes_has_no_interval_of_0_to_0(tmp_path: Path) -> None:
    rows = make_log(0)
    for row in rows:
        row["facts"] = {**row.get("facts", {}), "duration_s": 2.0}
    result = run(write_log(tmp_path / "log.jsonl", rows))
    (duration,) = (line for line in result.output.splitlines() if line.startswith("duration"))
    assert "the value is the same in each step" in duration
