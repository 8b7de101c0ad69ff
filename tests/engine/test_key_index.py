"""Keys are found exactly, whichever of their marks collide and however the table changed."""

import tempfile
from collections.abc import Iterator, Sequence

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unreel.asking.answer_table import ANSWERS
from unreel.core.content_ids import digest
from unreel.core.errors import UnreadableSourceError
from unreel.engine.clip_facts import CLIPS
from unreel.engine.key_index import KeyHasher, KeyHashIndex, KeyIndex
from unreel.engine.location import StorageLocation
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.stage import Row
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock

KEYS = st.one_of(
    st.integers(0, 5).map(lambda number: digest(str(number))),
    st.integers(0, 2).map(lambda number: digest(str(number)).upper()),
    st.text("aé'\n", max_size=2),
)
REASONS = st.sampled_from([None, "refused", "undecodable"])
STORED = st.dictionaries(
    KEYS, st.tuples(REASONS, st.integers(1, 3), st.sampled_from([None, "", "1 2"]))
)
QUESTIONS = st.lists(st.tuples(KEYS, st.sampled_from([..., None, "", "1 2", "1 3"])), max_size=20)


def write(table: LanceTable, rows: Sequence[Row], *, how: str = "add") -> None:
    with build_writer_lock(table.place) as lock:
        writer = TableWriter(table, lock=lock, observe=lambda _step, _rows: None)
        if rows:
            getattr(writer, how)([table.schema.batch(rows)])


def named(*keys: str) -> list[Row]:
    return [{"key": key, "text": f"text of {key}"} for key in keys]


@given(
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1)), max_size=60),
    st.lists(st.integers(0, 4), max_size=5),
)
def test_marks_are_found_wherever_they_crowd(held: list[int], others: list[int]) -> None:
    slots = np.arange(len(held), dtype=np.uint32)
    wanted = [*held[::2], *others, 2**64 - 1]
    found = KeyHashIndex.sort(np.array(held, np.uint64), slots).find(np.array(wanted, np.uint64))
    pairs = sorted(zip(*(side.tolist() for side in found), strict=True))
    assert pairs == [
        (place, slot)
        for place, mark in enumerate(wanted)
        for slot, own in enumerate(held)
        if own == mark
    ]


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        KeyHasher, "short_hashes", lambda _self, stamps: np.full(len(stamps), 7, np.uint64)
    )


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each look at the column of keys reads."""
    told: list[int] = []
    scan = KeyIndex.scan

    def counting(self: KeyIndex, *given: object) -> Iterator[object]:
        for slots, batch in scan(self, *given):  # type: ignore[arg-type]
            told.append(len(slots))
            yield slots, batch

    monkeypatch.setattr(KeyIndex, "scan", counting)
    return told


@settings(max_examples=40)
@given(
    STORED,
    QUESTIONS,
    st.sets(st.sampled_from(["refused", "undecodable"])),
    st.sampled_from(["differ", "collide"]),
)
def test_what_is_due_is_what_a_set_of_all_keys_would_tell(
    stored: dict[str, tuple[str | None, int, str | None]],
    stream: list[tuple[str, object]],
    retry: set[str],
    short_hashes: str,
) -> None:
    questions: list[Row] = [
        {"key": key} if mark is ... else {"key": key, "mark": mark} for key, mark in stream
    ]
    expected: dict[str, int] = {}
    for row in questions:
        reason, attempt, mark = stored.get(row["key"], (None, 0, None))
        is_due = attempt == 0 or reason in retry or row.get("mark", mark) != mark
        if is_due and row["key"] not in expected:
            expected[row["key"]] = attempt + 1
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if short_hashes == "collide":
            patch.setattr(
                KeyHasher, "short_hashes", lambda _self, stamps: np.zeros(len(stamps), np.uint64)
            )
        table = LanceTable(StorageLocation(f"{folder}/clips.lance"), CLIPS)
        write(
            table,
            [
                {"key": key, "failure_reason": reason, "attempt": attempt, "mark": mark}
                for key, (reason, attempt, mark) in stored.items()
            ],
        )
        due = PendingQuestionFilter(table, retry)
        found = [(row["key"], row["attempt"]) for row in due.sift(questions)]
    assert found == list(expected.items())
    assert due.already == len(questions) - len(found)


def test_a_key_is_found_exactly_when_all_marks_collide(table: LanceTable, colliding: None) -> None:
    keys = [digest(str(number)) for number in range(50)]
    write(table, named(*keys[:40], "no hash"))
    assert set(table.held([*keys, "no hash", "never"])) == {*keys[:40], "no hash"}
    assert [row["text"] for row in table.get([keys[3], keys[45]])] == [f"text of {keys[3]}"]
    table.check()
    assert [
        row["key"] for row in PendingQuestionFilter(table).sift(named(*keys, "no hash", keys[45]))
    ] == keys[40:]


def test_only_what_another_writer_added_is_read_again(table: LanceTable, reads: list[int]) -> None:
    write(table, named(*map(str, range(100))))
    assert set(table.held(["5"])) == {"5"}
    assert reads == [100]
    table.check()
    table.get(["7"])
    assert reads == [100]
    other = LanceTable(table.place, table.schema)
    write(other, named("x", "y"))
    assert set(table.held(["5", "x", "z"])) == {"5", "x"}
    table.check()
    assert reads == [100, 2]


def test_a_key_that_another_writer_doubled_is_noticed_by_who_was_content_before(
    table: LanceTable,
) -> None:
    write(table, named("a", "b"))
    table.check()
    lance.write_dataset(
        pa.Table.from_batches([ANSWERS.batch(named("b"))]), table.place.uri, mode="append"
    )
    with pytest.raises(UnreadableSourceError, match="1 keys are in it more than once"):
        table.check()
