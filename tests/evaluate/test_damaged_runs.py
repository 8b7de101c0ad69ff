"""Runs whose files were really damaged: what each command says, and what a repair brings back."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

lance = pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

import pyarrow as pa

from unreel.cli.main import main
from unreel.core.settings import read_settings
from unreel.engine.access import Access
from unreel.engine.committer import Pace
from unreel.engine.kind import ANSWERS
from unreel.engine.place import Place
from unreel.engine.table import Table
from unreel.evaluate.job import Run, evaluate
from unreel.evaluate.recipe import check_recipe


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


Type = Callable[..., Said]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Type:
    """Types a command in this process; whatever else than an exit leaves it is a traceback."""

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["unreel", *map(str, words)])
        status: Any = 0
        try:
            main()
        except SystemExit as end:
            status = end.code
        told = capsys.readouterr()
        return Said(int(status or 0), told.out, told.err)

    return run


@pytest.fixture(scope="module")
def whole(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight answers in four commits."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    recipe = check_recipe({"benchmark": str(clips), "protocol": "reality", "model": "coin"})
    access = Access(settings=read_settings())
    run = Run(place=Place(str(folder)), recipe=recipe, access=access, ledgers=folder)
    evaluate(run, pace=Pace(rows=2, seconds=60))
    return folder


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return shutil.copytree(whole, tmp_path / "run")


def answers_of(run: Path) -> Table:
    return Table(Place(str(run / "answers.lance")), ANSWERS)


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
    empty,
    overwrite,
    flip_a_bit_of_an_answer,
    lose_a_data_file,
    lose_the_latest_manifest,
    cut_the_latest_manifest,
    lose_all_manifests,
    double_a_row,
    change_an_answer,
    add_a_row_with_a_wrong_key,
    lose_the_recipe,
    cut_the_recipe,
]
IN_WORDS = ("unreel runs check", "unreel runs repair", "unreel eval")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_told_and_a_mended_copy_of_it_becomes_the_same_run(
    damage: Callable[[Path], None], whole: Path, damaged: Path, clips: Path, typed: Type
) -> None:
    asked = ("eval", clips, "--protocol", "reality", "--model", "coin", "--json")
    before = json.loads(typed("score", whole, "--json").out)["scores"]
    damage(damaged)
    found = typed("runs", "check", damaged)
    assert found.status == 1, found
    assert f"unreel runs repair {damaged}" in found.err
    as_it_was = {path: path.read_bytes() for path in damaged.rglob("*") if path.is_file()}

    for words in (("score", damaged), ("report", damaged, "--out", damaged.parent / "page")):
        said = typed(*words)
        assert said.status in {0, 1, 2}
        if said.status == 2:
            assert any(step in said.err for step in IN_WORDS), said.err
    assert typed("runs", damaged.parent).status in {0, 1}

    mended = damaged.parent / "mended"
    done = typed("runs", "repair", damaged, "--out", mended, "--json")
    assert done.status == 0, done
    after = {path: path.read_bytes() for path in damaged.rglob("*") if path.is_file()}
    locks = {path for path in after if path.suffix == ".lock"}
    assert {path: data for path, data in after.items() if path not in locks} == {
        path: data for path, data in as_it_was.items() if path not in locks
    }
    asked_again = typed(*asked, "--out", mended)
    assert asked_again.status == 0, asked_again
    assert json.loads(asked_again.out)["scores"] == before
    assert stored_rows(mended) == stored_rows(whole)
    assert typed("runs", "check", mended).status == 0


def test_a_whole_run_is_said_to_be_whole_and_nothing_is_mended(
    damaged: Path, typed: Type, tmp_path: Path
) -> None:
    found = typed("runs", "check", damaged)
    assert found.status == 0, found
    assert "8 rows in 4 files" in found.out
    assert "is whole" in found.err
    told = json.loads(typed("runs", "check", damaged, "--json").out)
    assert told["whole"] is True
    assert {table["name"]: table["n_rows"] for table in told["tables"]} == {
        "answers": 8,
        "clips": 8,
    }
    said = typed("runs", "repair", damaged)
    assert said.status == 0
    assert "nothing to mend" in said.err
    assert not (tmp_path / "run-repaired").exists()
