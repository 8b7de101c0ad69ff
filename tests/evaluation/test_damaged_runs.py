"""Runs whose files were really damaged: what each command says, and what a restoration brings back."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

import lance
import pyarrow as pa

from readers import end_process
from unreel.asking.answer_table import ANSWERS
from unreel.core.settings import read_environment_settings
from unreel.engine.committer import CommitPace
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.engine.table import LanceTable
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import EvalRun, evaluate

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
    lose_the_latest_manifest,
    cut_the_recipe,
    *(
        pytest.param(damage, marks=pytest.mark.slow)
        for damage in (
            empty,
            overwrite,
            lose_a_data_file,
            double_a_row,
            cut_the_latest_manifest,
            lose_all_manifests,
            change_an_answer,
            add_a_row_with_a_wrong_key,
            lose_the_recipe,
        )
    ),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_restored_run_asks_lost_questions_again_and_becomes_the_run_that_it_was(
    damage: Callable[[Path], None], whole: Path, damaged: Path, clips: Path, typed: Type
) -> None:
    before = json.loads(typed("score", whole, "--json").out)["scores"]
    damage(damaged)
    checked = json.loads(typed("runs", "check", damaged, "--json").out)
    problems = {part["name"]: part for part in checked["parts"] if part["problem"]}
    restored = typed("runs", "restore", damaged, "--json")
    if damage is lose_all_manifests:
        assert restored.status == 2
        assert "no earlier version is intact. Move this table away" in restored.err
        shutil.rmtree(damaged / "answers.lance")
    elif damage is cut_the_recipe:
        assert "delete recipe.json" in problems["recipe"]["problem"]
        (damaged / "recipe.json").unlink()
    elif damage in {lose_the_recipe, lose_the_latest_manifest}:
        assert json.loads(restored.out)["versions"] == {}
    else:
        version = problems["answers"]["intact_version"]
        assert json.loads(restored.out)["versions"] == {"answers": version}
        assert answers_of(damaged).open().version == version
    asked_again = typed(*asked(clips), "--out", damaged)
    assert asked_again.status == 0, asked_again
    assert json.loads(asked_again.out)["scores"] == before
    assert stored_rows(damaged) == stored_rows(whole)


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
    assert found.status == (0 if damage is lose_the_latest_manifest else 1), found
    resumed = typed(*asked(clips), "--out", damaged)
    assert resumed.status in {0, 2}
    if resumed.status == 2:
        assert any(step in resumed.err for step in NEXT_STEPS), resumed.err
        assert files_of(damaged) == as_it_was


NEXT_STEPS = ("unreel runs check", "unreel runs restore", "unreel eval --out")


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
        ("runs", "check", damaged),
        ("runs", "restore", damaged),
    ):
        said = typed(*words)
        assert said.status == 2, said
        assert "upgrade unreel" in said.err.lower(), said.err
    assert typed("runs", damaged.parent).status in {0, 1}
    assert files_of(damaged) == as_it_was


def test_a_file_that_ends_its_reader_is_a_problem_of_the_table(
    damaged: Path, typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unreel.evaluation.run_check._read_version", end_process)
    checked = json.loads(typed("runs", "check", damaged, "--json").out)
    assert {part["problem"] for part in checked["parts"][1:]} == {
        "reading it ends the process that reads it"
    }


@pytest.mark.parametrize("words", [("check",), ("restore",)])
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
def test_a_damaged_run_on_a_store_is_reported_and_restored_there(
    whole: Path, s3: Any, clips: Path, typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    assert f"unreel runs restore {run}" in found.err
    said = typed("score", run)
    assert said.status == 2
    assert "unreel runs check" in said.err
    assert typed("runs", "restore", run).status == 0
    resumed = typed(*asked(clips), "--out", run)
    assert resumed.status == 0, resumed
    assert (
        json.loads(resumed.out)["scores"]
        == json.loads(typed("score", whole, "--json").out)["scores"]
    )
    assert typed("runs", "check", run).status == 0
