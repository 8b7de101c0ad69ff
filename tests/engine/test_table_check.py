"""Tables read to the last byte: what is damaged, what is not, and what can be got back."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from judges import dies_of_b, nothing
from unreel.core.errors import UnreadableSourceError
from unreel.engine.committer import CommitPace, TableCommitter
from unreel.engine.location import StorageLocation
from unreel.engine.schema import compute_row_seal
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.engine.table_check import (
    CHANGED,
    UNKNOWN_REASON,
    TableChecker,
    UnreadableFragment,
    check_stored_table,
)
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.table_schemas import ANSWERS


def commit(table: LanceTable, *rows: Row) -> None:
    with TableCommitter(table, pace=CommitPace(), on_commit=lambda _: None) as sink:
        for row in rows:
            sink.add(row)


def test_a_file_that_ends_its_reader_is_unreadable_and_the_others_are_read(
    table: LanceTable,
) -> None:
    for key in "abc":
        commit(table, {"key": key})
    with TableChecker() as examiner:
        found = check_stored_table(table, examiner, dies_of_b)
    assert [isinstance(how, UnreadableFragment) for _, how in found.pieces] == [False, True, False]
    assert found.n_rows == 2
    assert found.whole_version == 2
    assert not found.is_whole


def test_failures_are_whole_unless_nobody_knows_their_reason(table: LanceTable) -> None:
    commit(table, {"key": "a", "failure_reason": "refused"}, {"key": "b", "text": "yes"})
    with TableChecker() as examiner:
        assert check_stored_table(table, examiner, nothing).is_whole
        commit(table, {"key": "c", "failure_reason": "boredom"})
        assert check_stored_table(table, examiner, nothing).faults == {UNKNOWN_REASON: 1}


def test_a_row_that_was_changed_is_found_and_never_handed_out(table: LanceTable) -> None:
    commit(table, {"key": "a", "text": "yes", "cost_usd": 1})
    commit(table, {"key": "b", "text": "yes"})
    assert len(list(table.rows())) == 2
    lance.dataset(table.place.uri).update({"text": "'no'"}, where="key = 'a'")
    with pytest.raises(UnreadableSourceError, match=r"changed after it was written.*runs check"):
        list(table.rows())
    with pytest.raises(UnreadableSourceError, match="changed after it was written"):
        table.get(["a"])
    assert table.get(["b"])[0]["text"] == "yes"
    with TableChecker() as examiner:
        assert check_stored_table(table, examiner, nothing).faults == {CHANGED: 1}


def test_rows_of_before_seals_are_read_and_joined_by_sealed_ones(table: LanceTable) -> None:
    unsealed = pa.Table.from_batches([ANSWERS.batch([{"key": "a", "text": "old"}])]).drop(["seal"])
    lance.write_dataset(unsealed, table.place.uri)
    commit(table, {"key": "b", "text": "new"})
    assert {row["key"]: row["text"] for row in table.rows()} == {"a": "old", "b": "new"}
    seals = lance.dataset(table.place.uri).to_table(columns=["seal"]).column("seal").to_pylist()
    assert [seal is None for seal in seals] == [True, False]
    with TableChecker() as examiner:
        assert check_stored_table(table, examiner, nothing).is_whole


def test_a_seal_does_not_mind_columns_of_later_releases_that_are_empty() -> None:
    row = {"key": "a", "text": "yes"}
    assert compute_row_seal(row) == compute_row_seal(row | {"mood": None, "seal": 7})
    assert compute_row_seal(row) != compute_row_seal(row | {"mood": "good"})


def test_a_table_that_is_not_there_is_no_damaged_one_and_the_other_way_round(
    table: LanceTable,
) -> None:
    assert not table.exists()
    assert table.count() == 0
    commit(table, {"key": "a"})
    for manifest in (table.place.path / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"")
    for look in (table.exists, table.count, table.check, lambda: table.held(["a"])):
        with pytest.raises(UnreadableSourceError, match="unreel runs check"):
            look()
    with pytest.raises(UnreadableSourceError, match="unreel runs check"):
        commit(table, {"key": "b"})


def test_what_a_first_commit_left_that_was_killed_is_no_table(tmp_path: Path) -> None:
    table = LanceTable(StorageLocation(str(tmp_path / "t.lance")), ANSWERS)
    left = table.place.path / "_transactions"
    left.mkdir(parents=True)
    (left / "0-x.txn").write_bytes(b"")
    assert not table.exists()
    commit(table, {"key": "a"})
    assert table.count() == 1


def test_compaction_of_a_table_with_a_cut_file_says_what_to_do(table: LanceTable) -> None:
    for key in "abc":
        commit(table, {"key": key})
    with build_writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lambda _step, _n: None)
        file = table.open().get_fragments()[1].data_files()[0].path
        (table.place.path / "data" / file).write_bytes(b"")
        with pytest.raises(UnreadableSourceError, match="unreel runs check"):
            writer.compact()
