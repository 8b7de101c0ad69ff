"""Runs that travel: scored from any folder, moved with their benchmark, and never mixed with another."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from unreel.core.settings import read_environment_settings
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import evaluate
from unreel.evaluation.run_lookup import build_eval_run, build_run_name
from unreel.evaluation.stored_recipe import find_recipe_changes

Typed = Callable[..., Any]


@pytest.fixture
def project(clips: Path, tmp_path: Path) -> Path:
    """A folder with a benchmark of its own."""
    folder = tmp_path / "project"
    shutil.copytree(clips.parent, folder / "bench")
    (folder / "bench" / "manifest.csv").rename(folder / "bench" / "clips.csv")
    return folder


@pytest.fixture
def asked(project: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same once it was asked about, by relative paths."""
    monkeypatch.chdir(project)
    assert typed("eval", "bench/clips.csv", *COIN, "--out", "runs/coin").status == 0
    return project


COIN = ("--protocol", "reality", "--model", "coin", "--trusted")


def rewrite(table: Path, change: Callable[[list[str]], list[str]]) -> None:
    table.write_text("\n".join(change(table.read_text().splitlines())) + "\n")


def test_a_run_is_scored_compared_shown_and_gone_on_with_from_another_folder(
    asked: Path, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = json.loads(typed("score", "runs/coin", "--json").out)["scores"]
    monkeypatch.chdir(tmp_path)
    there = typed("score", "project/runs/coin", "--json")
    assert there.status == 0, there.err
    assert json.loads(there.out)["scores"] == here
    assert typed("report", "project/runs/coin", "--out", "page").status == 0
    assert typed("export", "project/runs/coin", "--to", "jsonl", "--out", "rows.jsonl").status == 0
    other = typed("eval", asked / "bench", *COIN, "--layout", "list", "--json")
    assert other.status == 0, (
        other.err
    )  # another folder, other words for the benchmark: another run
    assert json.loads(other.out)["outcome"]["answers"]["done"] > 0
    again = typed("eval", "project/bench/clips.csv", *COIN, "--out", "project/runs/coin", "--json")
    assert again.status == 0, again.err
    assert json.loads(again.out)["outcome"]["answers"]["done"] == 0
    retried = typed("eval", "--out", "project/runs/coin", "--retry-failed")
    assert retried.status == 0, retried.err


def test_a_run_that_moved_with_its_benchmark_is_scored_by_what_moved(
    asked: Path, typed: Typed, tmp_path: Path
) -> None:
    before = json.loads(typed("score", "runs/coin", "--json").out)["scores"]
    shutil.copytree(asked, tmp_path / "elsewhere")  # times of change are new
    for file in (tmp_path / "elsewhere" / "bench").iterdir():
        os.utime(file, ns=(1, 1))
    shutil.rmtree(asked / "bench")
    moved = typed("score", tmp_path / "elsewhere" / "runs" / "coin", "--json")
    assert moved.status == 0, moved.err
    assert json.loads(moved.out)["scores"] == before


def test_a_run_is_scored_without_its_clips(asked: Path, typed: Typed) -> None:
    before = json.loads(typed("score", "runs/coin", "--json").out)["scores"]
    for clip in (asked / "bench").glob("*.mp4"):
        clip.unlink()
    after = typed("score", "runs/coin", "--json")
    assert after.status == 0, after.err
    assert json.loads(after.out)["scores"] == before


def test_a_benchmark_that_moved_alone_is_named_and_known_again(asked: Path, typed: Typed) -> None:
    (asked / "bench").rename(asked / "other")
    lost = typed("score", "runs/coin")
    assert lost.status == 2
    assert "no such file or folder" in lost.err
    assert "--benchmark PATH" in lost.err
    table = asked / "other" / "clips.csv"
    for command in (("score",), ("report", "--out", "page"), ("compare",)):
        found = typed(*command, "runs/coin", "--benchmark", table)
        assert found.status == 0 or "nothing to compare with" in found.err, found.err
    rewrite(table, lambda lines: [*lines, "c0.mp4,real,,g9"])
    again = typed("eval", "other/clips.csv", *COIN, "--out", "runs/coin")
    assert again.status == 0, again.err  # a second row of one name is no entry
    assert typed("score", "runs/coin").status == 0  # it knows the new place now


def test_a_changed_truth_is_refused_in_words_and_taken_when_accepted(
    asked: Path, typed: Typed
) -> None:
    table = asked / "bench" / "clips.csv"
    rewrite(table, lambda lines: [line.replace("Veo", "Sora") for line in lines])
    for command in (
        ("score", "runs/coin"),
        ("report", "runs/coin", "--out", "page"),
        ("export", "runs/coin", "--to", "jsonl", "--out", "rows.jsonl"),
        ("eval", "bench/clips.csv", *COIN, "--out", "runs/coin"),
    ):
        refused = typed(*command)
        assert refused.status == 2, command
        assert "8 usable rows then and now, but other names or another truth" in refused.err
        assert "--accept-changed" in refused.err
        assert typed(*command, "--accept-changed").status == 0, command
    assert typed("score", "runs/coin").status == 0  # the last one, an eval, keeps what is now


def test_the_order_of_rows_and_where_clips_lie_make_no_difference(
    asked: Path, typed: Typed
) -> None:
    bench = asked / "bench"
    (bench / "films").mkdir()
    for clip in bench.glob("*.mp4"):
        clip.rename(bench / "films" / clip.name)

    def moved(lines: list[str]) -> list[str]:
        return [f"{lines[0]},name", *(f"films/{x},{x.partition(',')[0]}" for x in lines[:0:-1])]

    rewrite(bench / "clips.csv", moved)
    again = typed("eval", "bench/clips.csv", *COIN, "--out", "runs/coin", "--json")
    assert again.status == 0, again.err
    assert json.loads(again.out)["outcome"]["answers"]["done"] == 0
    assert typed("score", "runs/coin").status == 0


def test_two_benchmarks_of_one_name_are_not_mixed(asked: Path, typed: Typed) -> None:
    shutil.copytree(asked / "bench", asked / "second")
    rewrite(asked / "second" / "clips.csv", lambda lines: lines[:-2])
    clips = typed("runs", "check", "runs/coin", "--json").out
    refused = typed("eval", "second/clips.csv", *COIN, "--out", "runs/coin")
    assert refused.status == 2
    assert "contains a run over another benchmark" in refused.err
    foreseen = typed("eval", "second/clips.csv", *COIN, "--out", "runs/coin", "--dry-run")
    assert (foreseen.status, foreseen.err.count("over another benchmark")) == (2, 1)
    assert str(asked / "bench" / "clips.csv") in refused.err
    assert typed("runs", "check", "runs/coin", "--json").out == clips  # nothing was surveyed


def test_a_run_grows_and_is_not_narrowed(asked: Path, typed: Typed) -> None:
    first = typed("eval", "bench/clips.csv", *COIN, "--limit", 2, "--out", "runs/few")
    assert first.status == 0, first.err
    more = typed("eval", "bench/clips.csv", *COIN, "--limit", 4, "--out", "runs/few", "--json")
    assert more.status == 0, more.err
    assert "grows: 2 clips (balanced) before, 4 clips (balanced) now" in more.err
    assert json.loads(more.out)["outcome"]["answers"] | {"seconds": 0} == {
        "already": 2,
        "done": 2,
        "failures": {},
        "seconds": 0,
    }
    fewer = typed("eval", "bench/clips.csv", *COIN, "--limit", 3, "--out", "runs/few")
    assert fewer.status == 2
    assert "4 clips (balanced) before, 3 clips (balanced) now" in fewer.err
    other = typed("eval", "bench/clips.csv", *COIN, "--nframe", 3, "--out", "runs/few")
    assert other.status == 2
    assert "sampling=uniform-8" in other.err
    assert "sampling=uniform-3" in other.err


@pytest.mark.parametrize(
    ("before", "now", "grows"),
    [
        ({"limit": 2}, {}, True),
        ({"split": "test"}, {}, True),
        ({"split": "test", "limit": 2}, {"split": "test"}, True),
        ({"split": "test", "limit": 2}, {"limit": 2}, False),
        ({"limit": 2, "choice": "first"}, {"limit": 3}, False),
        ({}, {"seed": 1}, False),
        ({}, {"condition": [{}, {"sampling": "uniform-4"}]}, True),
        ({"condition": [{}, {"sampling": "uniform-4"}]}, {}, False),
        ({"max_connections": 1}, {"deadline_s": 5.0}, None),
    ],
    ids=str,
)
def test_what_a_recipe_asks_otherwise_is_growth_or_not(before, now, grows) -> None:
    asked = {"benchmark": "b", "protocol": "reality", "model": "coin"}
    changes = find_recipe_changes(
        validate_eval_recipe(asked | before), validate_eval_recipe(asked | now)
    )
    assert [grows for _, grows in changes] == ([] if grows is None else [grows])


@pytest.mark.parametrize(
    ("model", "benchmark", "name"),
    [
        ("openai/gpt-4o@http://h:8000/v1", "b/clips.csv", "gpt-4o-reality-clips"),
        ("openrouter/meta/llama-4", "b/", "llama-4-reality-b"),
        ("coin", "b/v@2.csv", "coin-reality-v-2"),
        ("ollama/llava:7b", ".", "llava-7b-reality-here"),
    ],
)
def test_a_run_is_called_by_its_model_and_its_benchmark(
    model: str, benchmark: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    recipe = validate_eval_recipe({"benchmark": benchmark, "protocol": "reality", "model": model})
    assert build_run_name(recipe) == name


def test_a_run_of_an_earlier_release_goes_on_under_its_earlier_name(
    clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = validate_eval_recipe({"benchmark": str(clips), "protocol": "reality", "model": "coin"})
    settings = read_environment_settings()
    assert (
        build_eval_run(recipe, None, settings, trusted=True).place.path.name
        == "coin-reality-manifest"
    )
    earlier = "runs/coin-reality-manifest.csv"
    evaluate(build_eval_run(recipe, earlier, settings, trusted=True))
    run = build_eval_run(recipe, None, settings, trusted=True)
    assert run.place.path.name == "coin-reality-manifest.csv"
    assert evaluate(run).answers.done == 0
