"""Tables hold one row for a key, whoever comes, and read the rows of every release."""

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from unreel.asking.answer_table import ANSWERS
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.engine.clip_facts import CLIPS
from unreel.engine.committer import CommitPace, TableCommitter
from unreel.engine.location import StorageLocation
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.progress import Progress
from unreel.engine.schema import TableSchema
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock


def commit(table: LanceTable, rows: Sequence[Row], *, pace: CommitPace | None = None) -> Progress:
    with TableCommitter(table, pace=pace or CommitPace(), on_commit=lambda _: None) as sink:
        for row in rows:
            sink.add(row)
    return sink.progress


def answers(*keys: str) -> list[Row]:
    return [{"key": key, "text": f"text of {key}"} for key in keys]


def test_what_was_committed_is_read_back(table: LanceTable) -> None:
    commit(table, [{"key": "a", "text": "yes", "latency_us": 3, "_frames": b"not stored"}])
    (row,) = table.rows()
    assert {name: value for name, value in row.items() if value is not None} == {
        "key": "a",
        "text": "yes",
        "latency_us": 3,
        "attempt": 1,
        "row_version": 1,
    }


def test_an_unknown_column_stops_the_run_and_says_what_to_do(table: LanceTable) -> None:
    with pytest.raises(InvalidValueError, match=r"begin its name with _"):
        commit(table, [{"key": "a", "colour": "red"}])
    assert table.count() == 0


def test_a_row_without_a_key_that_can_be_held_ends_the_run_with_words(table: LanceTable) -> None:
    for key in ("\ud800", None, 5):
        with pytest.raises(InvalidValueError, match="does not fit the columns of answers"):
            commit(table, [{"key": key, "text": "x"}])
    assert table.count() == 0


def test_held_tells_answers_from_failures_and_leaves_out_the_rest(table: LanceTable) -> None:
    commit(table, [*answers("a", "it's"), {"key": "b", "failure_reason": "refused"}])
    held = table.held(["a", "it's", "b", "c"])
    assert set(held) == {"a", "it's", "b"}
    assert held["a"] is None
    assert held["b"] == "refused"
    assert table.failures() == Counter(refused=1)


def test_a_second_try_replaces_the_failure_in_one_commit(table: LanceTable) -> None:
    commit(table, [*answers("a"), {"key": "b", "failure_reason": "refused"}])
    before = lance.dataset(table.place.uri).version
    commit(table, [{"key": "b", "text": "now", "attempt": 2}])
    assert {row["key"]: row["text"] for row in table.rows()} == {"a": "text of a", "b": "now"}
    assert next(table.rows(["attempt"], where="key = 'b'")) == {"attempt": 2}
    assert lance.dataset(table.place.uri).version == before + 1


def test_a_doubled_key_is_an_error_that_says_what_to_do(table: LanceTable) -> None:
    commit(table, answers("a", "b"))
    failure = {"key": "a", "failure_reason": "refused", "attempt": 9}
    foreign = pa.Table.from_batches([ANSWERS.batch([failure])])
    lance.write_dataset(foreign, table.place.uri, mode="append")
    with pytest.raises(
        UnreadableSourceError, match=r"1 keys are in it more than once.*runs restore"
    ):
        list(table.rows())
    with pytest.raises(UnreadableSourceError, match="more than once"):
        commit(table, answers("c"))


def test_a_second_committer_of_another_process_is_refused(table: LanceTable) -> None:
    code = (
        "import sys; from unreel.engine.location import StorageLocation\n"
        "from unreel.engine.writer_lock import build_writer_lock\n"
        "with build_writer_lock(StorageLocation(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, table.place.uri]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UnreadableSourceError, match=f"pid {other.pid}"):
            commit(table, answers("a"))
        other.kill()
    assert commit(table, answers("a")).done == 1


def test_a_foreign_commit_during_a_run_ends_it(table: LanceTable) -> None:
    commit(table, answers("a"))
    foreign = pa.Table.from_batches([ANSWERS.batch(answers("z"))])

    def intrude(step: str, _rows: int) -> None:
        if step == "written":
            lance.write_dataset(foreign, table.place.uri, mode="append")

    with (
        pytest.raises(UnreadableSourceError, match="something else committed"),
        TableCommitter(table, pace=CommitPace(), on_commit=lambda _: None, observe=intrude) as sink,
    ):
        sink.add(answers("b")[0])
    assert {row["key"] for row in table.rows()} == {"a", "z"}


def test_compaction_joins_fragments_and_lets_old_versions_go(table: LanceTable) -> None:
    for key in "abcdefgh":
        commit(table, answers(key))
    with build_writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lambda _step, _rows: None)
        writer.compact(keep=timedelta(0))
        writer.append(answers("i"))
    dataset = lance.dataset(table.place.uri)
    assert len(dataset.get_fragments()) == 2
    assert len(dataset.versions()) <= 3
    assert {row["key"] for row in table.rows()} == set("abcdefghi")


def test_a_reader_goes_on_with_its_version_after_a_compaction(table: LanceTable) -> None:
    for key in "abcdefgh":
        commit(table, answers(key))
    reader = lance.dataset(table.place.uri)
    with build_writer_lock(table.place) as lock:
        TableWriter(table, lock=lock, observe=lambda _step, _rows: None).compact()
    assert set(reader.to_table(columns=["key"])["key"].to_pylist()) == set("abcdefgh")


def _seconds_to_microseconds(row: Row) -> Row:
    return {**row, "took_us": None if row["took_s"] is None else round(row["took_s"] * 1e6)}


OLD = TableSchema(name="sample", version=1, columns={"took_s": "float64"})
NEW = TableSchema(
    name="sample",
    version=2,
    columns={"took_s": "float64", "took_us": "int64"},
    upgrades={1: _seconds_to_microseconds},
)


def test_rows_of_an_older_release_are_upgraded_on_read_and_joined_by_new_ones(
    tmp_path: Path,
) -> None:
    place = StorageLocation(str(tmp_path / "sample.lance"))
    commit(LanceTable(place, OLD), [{"key": "a", "took_s": 1.5}])
    assert [row["took_us"] for row in LanceTable(place, NEW).rows()] == [1_500_000]
    commit(LanceTable(place, NEW), [{"key": "b", "took_us": 7}])
    rows = {row["key"]: row["took_us"] for row in LanceTable(place, NEW).rows()}
    assert rows == {"a": 1_500_000, "b": 7}


def test_rows_of_a_newer_release_ask_for_an_upgrade(tmp_path: Path) -> None:
    place = StorageLocation(str(tmp_path / "sample.lance"))
    commit(LanceTable(place, NEW), [{"key": "a", "took_us": 7}])
    with pytest.raises(UnreadableSourceError, match="Upgrade unreel"):
        list(LanceTable(place, OLD).rows())


def test_a_table_that_cannot_be_read_is_not_taken_for_an_absent_one(table: LanceTable) -> None:
    commit(table, answers("a"))
    for manifest in table.place.path.glob("_versions/*"):
        manifest.write_bytes(b"not a manifest")
    with pytest.raises(UnreadableSourceError, match="cannot be read"):
        table.held(["a"])


def test_a_row_with_another_mark_is_due_and_replaces_the_old_one(tmp_path: Path) -> None:
    table = LanceTable(StorageLocation(str(tmp_path / "clips.lance")), CLIPS)
    commit(table, [{"key": "a", "mark": "10 x"}])
    assert not list(PendingQuestionFilter(table).iter_due([{"key": "a", "mark": "10 x"}]))
    assert not list(PendingQuestionFilter(table).iter_due([{"key": "a"}]))
    commit(table, PendingQuestionFilter(table).iter_due([{"key": "a", "mark": "10 y"}]))
    assert [row["mark"] for row in table.rows()] == ["10 y"]
