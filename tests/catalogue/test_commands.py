"""`unreel benchmarks list` and `show`, and `unreel models list` and `show`, as people type them."""

import json
from functools import partial
from pathlib import Path

import pytest

from unreel.catalogue.entries import list_benchmarks, list_models
from warm import Warm


@pytest.fixture
def run(tmp_path: Path, warm: Warm):
    return partial(warm.run, cwd=tmp_path)


@pytest.mark.parametrize(
    ("group", "entries"), [("benchmarks", list_benchmarks()), ("models", list_models())]
)
def test_list_prints_a_row_for_each_entry_and_all_facts_as_json(run, group: str, entries) -> None:
    shown = run(group, "list")
    assert shown.returncode == 0, shown.stderr
    head, *rows = [line.split("\t") for line in shown.stdout.splitlines()]
    assert head[:2] == ["name", "hub_ids"]
    assert [row[0] for row in rows] == [entry.name for entry in entries]
    document = json.loads(run(group, "list", "--json").stdout)
    assert [item["name"] for item in document] == [entry.name for entry in entries]
    marks = {fact["mark"] for item in document for fact in item["facts"]}
    assert marks == {"verified", "third party", "measured", "not stated"}


@pytest.mark.parametrize(
    ("group", "name", "words"),
    [
        ("benchmarks", "fakeparts", "8e49f5791d99cf7e1200785942cb3e55f4435acc"),
        ("models", "skyra-rl", "a19a399a3c22c7864adf8a5ebd7401f2b6e378ef3b26a6cd3eb1dae2484ef9b3"),
    ],
)
def test_show_prints_everything_with_mark_and_source_also_what_is_not_stated(
    run, group: str, name: str, words: str
) -> None:
    shown = run(group, "show", name)
    assert shown.returncode == 0, shown.stderr
    assert words in shown.stdout
    head, *rows = [line.split("\t") for line in shown.stdout.splitlines()]
    assert head == ["fact", "value", "mark", "source"]
    assert [row for row in rows if len(row) != 4 or not all(row)] == []
    assert any(row[1:3] == ["not stated", "not stated"] for row in rows)
    document = json.loads(run(group, "show", name, "--json").stdout)
    assert [fact["fact"] for fact in document["facts"]] == [row[0] for row in rows]
    assert all(fact["source"] for fact in document["facts"])


def test_a_value_that_only_a_third_party_states_says_so_in_the_list(run) -> None:
    rows = {line.split("\t")[0]: line for line in run("benchmarks", "list").stdout.splitlines()}
    assert "CC0-1.0 (third party)" in rows["fakeparts"]
    assert "third party" not in rows["deeptracereward"]


@pytest.mark.parametrize("group", ["benchmarks", "models"])
def test_an_unknown_name_ends_with_status_2_and_the_known_names(run, group: str) -> None:
    done = run(group, "show", "skyra-lr" if group == "models" else "loky")
    assert done.returncode == 2
    assert "Did you mean" in done.stderr
    assert "Traceback" not in done.stderr


def test_benchmarks_without_a_command_still_shows_the_layouts(run) -> None:
    shown = run("benchmarks")
    assert shown.returncode == 0
    assert "deeptrace: " in shown.stdout
