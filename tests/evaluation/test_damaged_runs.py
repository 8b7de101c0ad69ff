"""Runs whose files were really damaged: what each command says, and what a repair brings back."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

import lance
import pyarrow as pa

from unreel.core.settings import read_environment_settings
from unreel.engine.committer import CommitPace
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.engine.table import LanceTable
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import EvalRun, evaluate
from unreel.evaluation.table_schemas import ANSWERS

Type = Callable[..., Any]


@pytest.fixture(scope="module")
def whole(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight answers in four commits."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    recipe = validate_eval_recipe({"benchmark": str(clips), "protocol": "reality", "model": "coin"})
    access = ClipAccessSettings(settings=read_environment_settings(), trusted=True)
    run = EvalRun(place=StorageLocation(str(folder)), recipe=recipe, access=access, ledgers=folder)
    evaluate(run, pace=CommitPace(rows=2, seconds=60))
    return folder


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return shutil.copytree(whole, tmp_path / "run")


def answers_of(run: Path) -> LanceTable:
    return LanceTable(StorageLocation(str(run / "answers.lance")), ANSWERS)


def data_file(run: Path, number: int = 1) -> Path:
    fragment = answers_of(run).open().get_fragments()[number]
    return run / "answers.lance" / "data" / fragment.data_files()[0].path


def manifests(run: Path) -> list[Path]:
    return sorted((run / "answers.lance" / "_versions").glob("*.manifest"))


def stored_rows(run: Path) -> dict[str, Any]:
    rows = [row | {"latency_us": 0} for row in answers_of(run).rows()]
    assert len({row["key"] for row in rows}) == len(rows)
    return {row["key"]: row for row in rows}


def cut(run: Path) -> None:
    file = data_file(run)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(run: Path) -> None:
    data_file(run).write_bytes(b"")


def overwrite(run: Path) -> None:
    file = data_file(run)
    file.write_bytes(bytes(255 - byte for byte in file.read_bytes()))


def flip_a_bit_of_an_answer(run: Path) -> None:
    file = data_file(run)
    data = bytearray(file.read_bytes())
    at = data.index(b"<answer>") + len(b"<answer>")
    data[at] ^= 1
    file.write_bytes(data)


def lose_a_data_file(run: Path) -> None:
    data_file(run).unlink()


def lose_the_latest_manifest(run: Path) -> None:
    manifests(run)[0].unlink()


def cut_the_latest_manifest(run: Path) -> None:
    manifests(run)[0].write_bytes(manifests(run)[0].read_bytes()[:100])


def lose_all_manifests(run: Path) -> None:
    for manifest in manifests(run):
        manifest.unlink()


def double_a_row(run: Path) -> None:
    table = answers_of(run)
    first = table.open().to_table().slice(0, 1)
    lance.write_dataset(first, table.place.uri, mode="append")


def change_an_answer(run: Path) -> None:
    dataset = answers_of(run).open()
    key = next(answers_of(run).rows())["key"]
    dataset.update({"text": "'<answer>7</answer>'"}, where=f"key = '{key}'")


def add_a_row_with_a_wrong_key(run: Path) -> None:
    table = answers_of(run)
    row = next(table.rows()) | {"key": "0" * 64}
    foreign = pa.Table.from_batches([ANSWERS.batch([row])])
    lance.write_dataset(foreign, table.place.uri, mode="append")


def lose_the_recipe(run: Path) -> None:
    (run / "recipe.json").unlink()


def cut_the_recipe(run: Path) -> None:
    (run / "recipe.json").write_bytes((run / "recipe.json").read_bytes()[:100])


DAMAGES = [
    cut,
    flip_a_bit_of_an_answer,
    lose_a_data_file,
    lose_the_latest_manifest,
    double_a_row,
    cut_the_recipe,
    *(
        pytest.param(damage, marks=pytest.mark.slow)
        for damage in (
            empty,
            overwrite,
            cut_the_latest_manifest,
            lose_all_manifests,
            change_an_answer,
            add_a_row_with_a_wrong_key,
            lose_the_recipe,
        )
    ),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_mended_copy_of_a_damaged_run_becomes_the_run_that_it_was(
    damage: Callable[[Path], None], whole: Path, damaged: Path, clips: Path, typed: Type
) -> None:
    before = json.loads(typed("score", whole, "--json").out)["scores"]
    damage(damaged)
    as_it_was = files_of(damaged)
    mended = damaged.parent / "mended"
    done = typed("runs", "repair", damaged, "--out", mended, "--json")
    assert done.status == 0, done
    assert json.loads(done.out)["out"] == str(mended)
    assert files_of(damaged) == as_it_was
    asked_again = typed(*asked(clips), "--out", mended)
    assert asked_again.status == 0, asked_again
    assert json.loads(asked_again.out)["scores"] == before
    assert stored_rows(mended) == stored_rows(whole)


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_command_says_what_to_do_about_a_damaged_run(
    damage: Callable[[Path], None], damaged: Path, clips: Path, typed: Type, tmp_path: Path
) -> None:
    damage(damaged)
    as_it_was = files_of(damaged)
    report = ("report", damaged, "--out", tmp_path / "page", "--media", "none")
    export = ("export", damaged, "--to", "jsonl", "--out", tmp_path / "rows.jsonl")
    unnoticed = {
        lose_the_latest_manifest,
        add_a_row_with_a_wrong_key,
    }  # every question that is there has its answer
    for words in (("score", damaged), report, export):
        said = typed(*words)
        if damage not in unnoticed:
            assert said.status == 2, said
            assert any(step in said.err for step in NEXT_STEPS), said.err
    listed = typed("runs", damaged.parent)
    assert listed.status in {0, 1}, listed
    assert files_of(damaged) == as_it_was
    found = typed("runs", "check", damaged)
    assert found.status == 1, found
    assert f"unreel runs repair {damaged}" in found.err
    resumed = typed(*asked(clips), "--out", damaged)
    assert resumed.status in {0, 2}
    if resumed.status == 2:
        assert any(step in resumed.err for step in NEXT_STEPS), resumed.err
        assert files_of(damaged) == as_it_was


NEXT_STEPS = ("unreel runs check", "unreel runs repair", "unreel eval --out")


def asked(clips: Path) -> tuple[object, ...]:
    return ("eval", clips, "--protocol", "reality", "--model", "coin", "--trusted", "--json")


def files_of(run: Path) -> dict[str, bytes]:
    """What the run holds; a lock and a ledger of starts are no part of it."""
    return {
        str(path.relative_to(run)): path.read_bytes()
        for path in run.rglob("*")
        if path.is_file() and path.suffix not in {".lock", ".ledger"}
    }


def of_a_later_row_version(run: Path) -> None:
    answers_of(run).open().update({"row_version": "2"}, where="attempt = 1")


def of_a_later_instrument(run: Path) -> None:
    recipe = run / "recipe.json"
    text = recipe.read_text(encoding="utf-8")
    recipe.write_text(text.replace('"reality@2"', '"reality@99"'), encoding="utf-8")


def of_a_later_recipe(run: Path) -> None:
    recipe = run / "recipe.json"
    stored = json.loads(recipe.read_text(encoding="utf-8"))
    stored["recipe"]["telepathy"] = True
    recipe.write_text(json.dumps(stored), encoding="utf-8")


@pytest.mark.parametrize(
    "later", [of_a_later_row_version, of_a_later_instrument, of_a_later_recipe]
)
def test_a_run_of_a_later_release_asks_for_it_and_is_left_alone(
    later: Callable[[Path], None], damaged: Path, clips: Path, typed: Type, tmp_path: Path
) -> None:
    later(damaged)
    as_it_was = files_of(damaged)
    for words in (
        ("score", damaged),
        ("report", damaged, "--out", tmp_path / "page"),
        (*asked(clips), "--out", damaged),
        ("runs", "repair", damaged),
    ):
        said = typed(*words)
        assert said.status == 2, said
        assert "upgrade unreel" in said.err.lower(), said.err
    found = typed("runs", "check", damaged)
    assert found.status == 1
    assert "Upgrade unreel" in found.err
    assert typed("runs", damaged.parent).status in {0, 1}
    assert files_of(damaged) == as_it_was


def test_a_whole_run_is_said_to_be_whole_and_nothing_is_mended(
    damaged: Path, typed: Type, tmp_path: Path
) -> None:
    as_it_was = files_of(damaged)
    found = typed("runs", "check", damaged)
    assert found.status == 0, found
    assert re.search(
        r"answers\t8 rows in \d files", found.out
    )  # How many, the clock of the commits decides.
    assert "is whole" in found.err
    said = typed("runs", "repair", damaged)
    assert said.status == 0
    assert "nothing to repair" in said.err
    assert files_of(damaged) == as_it_was
    assert not (tmp_path / "run-repaired").exists()


def test_a_check_tells_what_it_found_as_data(damaged: Path, typed: Type) -> None:
    lose_the_latest_manifest(damaged)
    leftover = damaged / "answers.lance" / "data" / "leftover.lance"
    leftover.write_bytes(b"half a file of a committer that was killed")
    change_an_answer(damaged)
    with (damaged / "answers.ledger").open("a", encoding="utf-8") as file:
        file.write("+half a li")
    told = json.loads(typed("runs", "check", damaged, "--json").out)
    assert told["whole"] is False
    (answers, clips_) = told["tables"]
    assert (answers["name"], clips_["name"]) == ("answers", "clips")
    assert answers["faults"] == {"changed after it was written": 1}
    assert answers["n_leftover_files"] == 2
    assert answers["whole_version"] == answers["version"] - 1
    assert clips_["n_rows"] == 8
    (ledger,) = [one for one in told["ledgers"] if one["name"] == "answers.ledger"]
    assert ledger["n_torn"] == 1


def test_rows_that_are_not_right_are_set_aside_and_torn_ledgers_written_anew(
    damaged: Path, typed: Type, tmp_path: Path
) -> None:
    change_an_answer(damaged)
    add_a_row_with_a_wrong_key(damaged)
    double_a_row(damaged)
    with (damaged / "answers.ledger").open("a", encoding="utf-8") as file:
        file.write("+one\n?none of ours\n+half a li")
    done = typed("runs", "repair", damaged)
    assert done.status == 0, done
    mended = tmp_path / "run-repaired"
    assert f"with --out {mended}" in done.err
    lines = (mended / "set-aside.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["fault"] for line in lines) == [
        "a key that does not follow from its question",
        "changed after it was written",
    ]
    assert (mended / "answers.ledger").read_text(encoding="utf-8") == "+one\n"
    again = typed("runs", "repair", damaged)
    assert again.status == 2
    assert "--out" in again.err


def test_answers_of_a_lost_manifest_are_found_again_and_not_asked_twice(
    damaged: Path, clips: Path, typed: Type, tmp_path: Path
) -> None:
    n_last = answers_of(damaged).open().get_fragments()[-1].count_rows()
    lose_the_latest_manifest(damaged)
    done = json.loads(typed("runs", "repair", damaged, "--json").out)
    assert done["tables"]["answers"]["kept"] == 8
    assert done["tables"]["answers"]["found_again"] == n_last
    resumed = json.loads(typed(*asked(clips), "--out", tmp_path / "run-repaired").out)
    assert resumed["outcome"]["answers"]["done"] == 0


def test_what_was_compacted_away_an_hour_ago_replaces_a_file_that_cannot_be_read(
    damaged: Path, typed: Type
) -> None:
    from unreel.engine.table_writer import TableWriter
    from unreel.engine.writer_lock import build_writer_lock

    table = answers_of(damaged)
    with build_writer_lock(table.place) as lock:
        TableWriter(table, lock=lock, observe=lambda _step, _n: None).compact()
    data_file(damaged, 0).write_bytes(b"")
    done = json.loads(typed("runs", "repair", damaged, "--json").out)["tables"]["answers"]
    assert (done["kept"], done["found_again"], done["unreadable"]) == (8, 8, 8)


@pytest.mark.parametrize("words", [("check",), ("repair",)])
def test_a_place_without_a_run_is_asked_wrongly(
    words: tuple[str, ...], typed: Type, tmp_path: Path
) -> None:
    for name in ("nowhere", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        said = typed("runs", *words, tmp_path / name)
        assert said.status == 2
        assert "contains no run" in said.err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.slow
def test_a_damaged_run_on_a_store_is_told_and_mended_there(
    whole: Path,
    s3: Any,
    clips: Path,
    typed: Type,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UNREEL_S3_ENDPOINT", s3.options["aws_endpoint"])
    monkeypatch.setenv("UNREEL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.options["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.options["aws_secret_access_key"])
    place = s3 / tmp_path.name
    for path in whole.rglob("*"):
        if path.is_file() and path.suffix not in {".lock", ".ledger"}:
            place.objects().put(f"run/{path.relative_to(whole)}", path.read_bytes())
    run = (place / "run").uri
    assert typed("runs", "check", run).status == 0
    lost = data_file(whole).relative_to(whole)
    place.objects().put(f"run/{lost}", b"half an object")
    found = typed("runs", "check", run)
    assert found.status == 1
    assert f"unreel runs repair {run}" in found.err
    said = typed("score", run)
    assert said.status == 2
    assert "unreel runs check" in said.err
    assert typed("runs", "repair", run).status == 0
    resumed = typed(*asked(clips), "--out", f"{run}-repaired")
    assert resumed.status == 0, resumed
    assert (
        json.loads(resumed.out)["scores"]
        == json.loads(typed("score", whole, "--json").out)["scores"]
    )
    assert typed("runs", "check", f"{run}-repaired").status == 0
