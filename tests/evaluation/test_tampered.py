"""Runs that something else changed: each is read as it is or refused in words, never by a traceback."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from evaluation.tamperings import tamperings
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.settings import read_environment_settings
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.evaluation.recipe import validate_eval_recipe
from unreel.evaluation.run_job import EvalRun, evaluate, open_run
from unreel.evaluation.scoring import score_run

REFUSALS = (UnreadableSourceError, InvalidSettingError, UnknownNameError)


@pytest.fixture(scope="module")
def finished(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> EvalRun:
    folder = tmp_path_factory.mktemp("finished") / "run"
    values = {"benchmark": str(clips), "protocol": "reality", "model": "coin"}
    run = EvalRun(
        place=StorageLocation(str(folder)),
        recipe=validate_eval_recipe(values),
        access=ClipAccessSettings(settings=read_environment_settings(), trusted=True),
        ledgers=folder,
    )
    evaluate(run)
    return run


@pytest.fixture
def run(finished: EvalRun, tmp_path: Path) -> EvalRun:
    """A copy of a finished run, to be spoiled."""
    folder = tmp_path / "run"
    shutil.copytree(finished.place.path, folder)
    return replace(finished, place=StorageLocation(str(folder)), ledgers=folder)


def _reopen(folder: Path) -> Any:
    return open_run(
        StorageLocation(str(folder)),
        ClipAccessSettings(settings=read_environment_settings(), trusted=True),
        ledgers=folder,
    )


def test_a_tampered_recipe_is_read_or_refused_in_words(run: Any) -> None:
    folder = run.place.path
    document = json.loads((folder / "recipe.json").read_bytes())
    found = dict(tamperings(document))
    assert len(found) > 400
    refused = 0
    for name, text in found.items():
        (folder / "recipe.json").write_bytes(text)
        try:
            again = _reopen(folder)
            again.reviewer_name()
            again.benchmark()
        except REFUSALS:
            refused += 1
        except Exception as error:  # noqa: BLE001  the name of the tampering is what helps
            pytest.fail(f"{name}: {type(error).__name__}: {error}")
    assert refused > 0.8 * len(found)


@pytest.mark.parametrize("limit", [1, 10**12])
def test_what_is_still_read_is_scored(run: Any, limit: int) -> None:
    folder = run.place.path
    document = json.loads((folder / "recipe.json").read_bytes())
    document["recipe"] |= {"limit": limit, "seed": 2**63 - 1}
    (folder / "recipe.json").write_text(json.dumps(document))
    (score,) = score_run(_reopen(folder))
    assert score.scorecard.n_questions == min(limit, 8)


def _rewrite(run: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Put another table in the place of one of the run's."""
    import lance

    place = str(run.place.path / name)
    table = lance.dataset(place).to_table()
    unsealed = table.drop_columns(["seal"])  # or the first look would end here
    shutil.rmtree(place)
    lance.write_dataset(change(unsealed), place)


def _cell(column: str, value: Any) -> Callable[[Any], Any]:
    """The same table with `value` in the first row of `column`, by whatever type that needs."""

    def change(table: Any) -> Any:
        import pyarrow as pa

        values = [value, *table.column(column).to_pylist()[1:]]
        kind = table.schema.field(column).type
        place = table.schema.get_field_index(column)
        field = pa.field(column, kind, nullable=True)
        return table.set_column(place, field, pa.array(values, kind))

    return change


def _typed(column: str, kind: str) -> Callable[[Any], Any]:
    def change(table: Any) -> Any:
        import pyarrow as pa

        place = table.schema.get_field_index(column)
        return table.set_column(place, column, pa.nulls(len(table), pa.type_for_alias(kind)))

    return change


SCHEMAS: dict[str, Callable[[Any], Any]] = {
    **{
        f"without {column}": lambda table, column=column: table.drop_columns([column])
        for column in ("key", "row_version", "attempt", "failure_reason", "clip")
    },
    **{f"{column} as numbers": _typed(column, "int64") for column in ("key", "clip")},
    **{f"{column} as text": _typed(column, "string") for column in ("row_version", "attempt")},
    "a key that is null": _cell("key", None),
    "a version that is null": _cell("row_version", None),
}


@pytest.mark.parametrize("table", ["answers.lance", "clips.lance"])
@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_table_with_other_columns_is_refused(run: Any, table: str, name: str) -> None:
    _rewrite(run, table, SCHEMAS[name])
    with pytest.raises(UnreadableSourceError, match="missing or of another type"):
        score_run(run)
    with pytest.raises(UnreadableSourceError, match="missing or of another type"):
        evaluate(run)


DAMAGED: dict[str, tuple[str, str, Any]] = {
    "facts that are no JSON": ("clips.lance", "facts", "{"),
    "facts of nothing": ("clips.lance", "facts", "{}"),
    "no facts": ("clips.lance", "facts", None),
    "facts of 100 MB": ("clips.lance", "facts", "[" + "[]," * 33_000_000 + "[]]"),
    "a failure that no release knows": ("clips.lance", "failure_reason", "banana"),
    "a failure without words": ("clips.lance", "failure_reason", "not-a-file"),
    "an answer that failed in no known way": ("answers.lance", "failure_reason", "banana"),
    "no text": ("answers.lance", "text", None),
    "notes that are no JSON": ("answers.lance", "notes", "{"),
}


@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_a_damaged_row_is_a_failure_and_the_others_are_scored(run: Any, name: str) -> None:
    table, column, value = DAMAGED[name]
    _rewrite(run, table, _cell(column, value))
    (score,) = score_run(run)
    card = score.scorecard
    assert card.n_questions == 8
    assert card.n_answered == (8 if column == "notes" else 7), card.failures


@pytest.mark.parametrize("version", [0, -1, 2, 32_000])
def test_a_row_of_no_known_version_is_refused(run: Any, version: int) -> None:
    def change(table: Any) -> Any:
        import pyarrow as pa

        place = table.schema.get_field_index("row_version")
        values = pa.array([version] * len(table), pa.int16())
        return table.set_column(place, table.schema.field("row_version"), values)

    _rewrite(run, "clips.lance", change)
    with pytest.raises(UnreadableSourceError, match=f"version {version};"):
        score_run(run)
