"""Keys are found exactly, whichever of their marks collide and however the table changed."""

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.engine.clip_facts import CLIPS
from unreel.engine.key_index import KeyHasher, KeyHashIndex, KeyIndex
from unreel.engine.location import StorageLocation
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.run import ALL_FAILURES, run_pending_questions
from unreel.engine.stage import Row, Stage, WorkerResources
from unreel.engine.table import LanceTable
from unreel.engine.table_writer import TableWriter
from unreel.engine.writer_lock import build_writer_lock
from unreel.evaluation.table_schemas import ANSWERS

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


class Counts(Stage):
    """Answers at once, and remembers what it was asked."""

    resources = WorkerResources(cpus=0, in_flight=4)

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, row: Row) -> Row:
        self.asked.append((row["key"], row["attempt"]))
        return row | {"text": "real"}


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
        KeyHasher, "marks", lambda _self, stamps: np.full(len(stamps), 7, np.uint64)
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
    marks: str,
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
        if marks == "collide":
            patch.setattr(
                KeyHasher, "marks", lambda _self, stamps: np.zeros(len(stamps), np.uint64)
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


@given(st.lists(st.none() | KEYS | st.text(max_size=70), max_size=20), st.integers(0, 20))
def test_two_texts_have_one_stamp_when_they_are_one_text(
    texts: list[str | None], start: int
) -> None:
    mixer, column = KeyHasher(), pa.array(texts, pa.string())
    stamps = [stamp.tobytes() for stamp in mixer.stamps(column)]
    for stamp, text in zip(stamps, texts, strict=True):
        assert [one == stamp for one in stamps] == [one == text for one in texts]
    assert [stamp.tobytes() for stamp in mixer.stamps(column.slice(start))] == stamps[start:]


def test_a_hash_is_no_text_that_hashes_to_it_nor_the_same_in_capitals(table: LanceTable) -> None:
    key = digest("a")
    write(table, named(key, "", "a" * 63, "g" * 64))
    asked = [key.upper(), "a" * 64, bytes.fromhex(key).decode("latin-1"), "é" * 32, " " + key[1:]]
    assert table.held(asked) == {}
    assert set(table.held(["", "a" * 63, "g" * 64, key])) == {key, "", "a" * 63, "g" * 64}


def test_rows_that_were_replaced_are_found_as_they_are_now(table: LanceTable) -> None:
    write(table, [{"key": name, "failure_reason": "refused"} for name in "abc"])
    assert table.held(["b"])["b"].reason == "refused"
    write(table, [{"key": "b", "text": "now", "attempt": 2}], how="replace")
    assert (table.held(["b"])["b"].reason, table.held(["b"])["b"].attempt) == (None, 2)
    assert [row["text"] for row in table.get(["b"])] == ["now"]
    assert table.held(["a"])["a"].reason == "refused"
    with build_writer_lock(table.place) as lock:
        TableWriter(table, lock=lock, observe=lambda _step, _rows: None).compact()
    assert set(table.held(["a", "b", "c", "d"])) == {"a", "b", "c"}
    table.check()


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


def test_a_table_that_was_made_anew_in_its_place_is_read_anew(table: LanceTable) -> None:
    write(table, named("a", "b"))
    assert set(table.held(["a"])) == {"a"}
    lance.write_dataset(
        pa.Table.from_batches([ANSWERS.batch(named("b", "c"))]), table.place.uri, mode="overwrite"
    )
    assert set(table.held(["a", "b", "c"])) == {"b", "c"}


def test_two_tables_do_not_mix_their_keys(table: LanceTable, tmp_path: Path) -> None:
    other = LanceTable(StorageLocation(str(tmp_path / "other.lance")), ANSWERS)
    write(table, named("a"))
    write(other, named("b"))
    assert (set(table.held(["a", "b"])), set(other.held(["a", "b"]))) == ({"a"}, {"b"})


def test_a_table_travels_without_what_it_remembers(table: LanceTable) -> None:
    write(table, named(*map(str, range(2_000))))
    table.check()
    sent = pickle.dumps(table)
    assert len(sent) < 4_000
    assert set(pickle.loads(sent).held(["7"])) == {"7"}


def test_questions_that_come_twice_are_asked_once_however_far_apart(
    table: LanceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unreel.engine.pending_questions._PACKED", 50)
    write(table, named(*map(str, range(100, 150))))
    numbers = [*range(1_000), *range(999, -1, -1), *range(5)]
    due = PendingQuestionFilter(table)
    asked = [int(row["key"]) for row in due.sift({"key": str(number)} for number in numbers)]
    assert asked == [number for number in range(1_000) if not 100 <= number < 150]
    assert due.already == len(numbers) - len(asked)


def test_a_run_asks_what_is_missing_and_failures_only_on_demand(table: LanceTable) -> None:
    keys = [digest(str(number)) for number in range(300)]
    failed = [{"key": key, "failure_reason": "refused", "attempt": 2} for key in keys[:10]]
    write(table, [*failed, *named(*keys[10:250])])
    questions = [{"key": key} for key in keys]
    first = Counts()
    summary = run_pending_questions(iter(questions), [first], table=table)
    assert sorted(first.asked) == sorted((key, 1) for key in keys[250:])
    assert (summary.already, summary.done) == (250, 50)
    second = Counts()
    run_pending_questions(iter(questions), [second], table=table, retry_failed=ALL_FAILURES)
    assert sorted(second.asked) == sorted((key, 3) for key in keys[:10])
    third = Counts()
    assert run_pending_questions(iter(questions), [third], table=table).already == 300
    assert third.asked == []


def test_a_key_that_no_table_can_hold_is_refused_with_words(table: LanceTable) -> None:
    for key in (5, "\ud800"):
        with pytest.raises(InvalidValueError, match="not a text that a table can store"):
            list(PendingQuestionFilter(table).sift([{"key": key}]))
