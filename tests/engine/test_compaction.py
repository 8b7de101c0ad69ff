"""A writer that lost its lease commits nothing and deletes nothing of the one who comes next."""

from datetime import timedelta

import pytest

from unreel.asking.answer_table import ANSWERS
from unreel.core.errors import UnreadableSourceError
from unreel.engine.committer import CommitPace, TableCommitter
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock


@pytest.mark.parametrize("moment", ["rewritten", "compacted"])
def test_a_compaction_that_outlasts_its_lease_deletes_nothing(
    s3: StorageLocation, moment: str
) -> None:
    table = LanceTable(s3 / f"outlasted-{moment}.lance", ANSWERS)
    with TableCommitter(table, pace=CommitPace(rows=1), on_commit=lambda _: None) as sink:
        for key in "abc":
            sink.add({"key": key, "text": key})
    others = f"outlasted-{moment}.lance/data/written-by-the-next-one.lance"

    def lose_the_lease(step: str, _count: int) -> None:
        if step == moment:
            store = s3.objects()
            store.put(f"outlasted-{moment}.lance.lock", b'{"owner": "another"}')
            store.put(others, b"not committed yet")

    with build_writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lose_the_lease)
        with pytest.raises(UnreadableSourceError, match="took over"):
            writer.compact(keep=timedelta(0))
    assert bytes(s3.objects().get(others).bytes()) == b"not committed yet"
    assert {row["key"] for row in table.rows()} == set("abc")


def test_what_was_written_when_the_lease_was_lost_is_not_committed(s3: StorageLocation) -> None:
    table = LanceTable(s3 / "lost-before-commit.lance", ANSWERS)

    def lose_the_lease(step: str, _count: int) -> None:
        if step == "written":
            s3.objects().put("lost-before-commit.lance.lock", b'{"owner": "another"}')

    with (
        pytest.raises(UnreadableSourceError, match="took over"),
        TableCommitter(
            table, pace=CommitPace(rows=1), on_commit=lambda _: None, observe=lose_the_lease
        ) as sink,
    ):
        sink.add({"key": "a", "text": "a"})
    assert table.count() == 0
