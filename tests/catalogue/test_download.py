"""Public benchmarks by name against a hub on loopback: get, check, eval and score, as people type them."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hub import Hub, serve_hub
from miniatures import MINIATURES
from unreel.catalogue.entries import list_benchmarks
from warm import Warm

ENTRIES = {entry.name: entry for entry in list_benchmarks()}


@pytest.fixture
def run(tmp_path: Path, warm: Warm, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "UNREEL_BENCHMARKS"):
        monkeypatch.delenv(name, raising=False)
    return partial(warm.run, cwd=tmp_path)


def serve(monkeypatch: pytest.MonkeyPatch, name: str, **options: Any) -> Iterator[Hub]:
    """A hub with the miniature `name`, as `HF_ENDPOINT`."""
    miniature, stated = MINIATURES[name], ENTRIES[name].revision
    short = stated.setting if stated and stated.setting else ""
    with serve_hub(Hub({}, sha=short.ljust(40, "5"), **options)) as hub:
        hub.repositories = {miniature.repository: miniature.build(hub.url)}
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("UNREEL_FETCH_FROM", hub.url)
        yield hub


def test_every_benchmark_that_can_be_downloaded_has_a_miniature() -> None:
    assert {name for name, entry in ENTRIES.items() if entry.download} == set(MINIATURES)
    assert [
        name for name, entry in ENTRIES.items() if entry.download and not entry.evaluation
    ] == []


@pytest.mark.parametrize("name", sorted(MINIATURES.keys() - {"loki"}))
def test_a_benchmark_is_downloaded_checked_evaluated_and_scored_by_its_name(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    miniature = MINIATURES[name]
    for hub in serve(monkeypatch, name):
        done = run("benchmarks", "get", name, "--yes", "--json")
        assert done.returncode == 0, done.stderr
        record = json.loads(done.stdout)
        assert (record["revision"], record["is_complete"]) == (hub.sha, True)
        assert record["n_bytes_received_twice"] == 0
        folder = tmp_path / "data" / "unreel" / "benchmarks" / name
        assert not [
            path for path in folder.rglob("*") if ".zip" in path.name or ".part" in path.name
        ]
        checked = run("benchmarks", "check", name, "--json")
        assert checked.returncode == 0, checked.stdout + checked.stderr
        result = json.loads(checked.stdout)
        assert result["labels"] == miniature.labels
        pairs = {each["protocol"]: each["n"] for each in result["instruments"]}["preference"]
        counts = (pairs, result["n_traces"], result["n_rated"])
        assert counts == (miniature.pairs, miniature.traces, miniature.rated)
        evaluated = run("eval", name, "--model", "coin", "--out", "r", "--json")
        assert evaluated.returncode == 0, evaluated.stderr
        assert f"from the catalogue: {miniature.shown}\n" in evaluated.stderr
        document = json.loads(evaluated.stdout)
        assert document["scores"][0]["scorecard"]["n_questions"] == miniature.asked
        assert document["published"]["benchmark"] == name
        scored = run("score", "r", "--benchmark", name, "--json")
        assert scored.returncode == 0, scored.stderr
        assert json.loads(scored.stdout)["published"] == document["published"]
