"""One kit that every engine inherits: the same rows, the same failures, the same way to end."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from unreel.asking.answer_table import ANSWERS
from unreel.core.errors import InvalidSettingError, MediaError, UnknownNameError
from unreel.core.failure import FailureReason
from unreel.engine.committer import CommitPace
from unreel.engine.crash_suspects import DEATHS_ALONE
from unreel.engine.local_runner import LocalRunner
from unreel.engine.location import StorageLocation
from unreel.engine.run import ALL_FAILURES, run_pending_questions
from unreel.engine.stage import Row, Stage, StageRunner, WorkerResources
from unreel.engine.start_log import DEATHS_IN_COMPANY, ItemStartLog
from unreel.engine.table import LanceTable
from unreel.engine.table_questions import TableQuestionSource

PACE = CommitPace(rows=16, seconds=0.2)
RAY_WARNS_OF_ITSELF = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")


def questions(n_rows: int) -> list[Row]:
    return [{"key": f"{number:04d}"} for number in range(n_rows)]


class Decode(Stage):
    """Sync, with a scratch column and failures of its own kind."""

    resources = WorkerResources(cpus=1, in_flight=2)

    def setup(self) -> None:
        self._salt = "frames of "

    def __call__(self, row: Row) -> Row:
        if row["key"].endswith("3"):
            raise MediaError(FailureReason.NO_VIDEO, "sound only")
        return row | {"_frames": [self._salt + row["key"], None, 1.5, b"\0"]}


class Ask(Stage):
    """Async; answers from the scratch column, and breaks on some rows."""

    resources = WorkerResources(cpus=0, in_flight=8)

    async def __call__(self, row: Row) -> Row:
        await asyncio.sleep(0.001)
        if row["key"].endswith("7"):
            msg = "seven"
            raise ValueError(msg)
        if row["key"].endswith("8"):
            return {"key": "another"}
        return row | {"text": row["_frames"][0], "latency_us": 5 if row["key"] < "0010" else None}


UNHELD = {
    "01": {"input_tokens": 2**63},
    "02": {"input_tokens": -(10**400)},
    "03": {"input_tokens": True},
    "04": {"latency_us": float("nan")},
    "05": {"latency_us": "5"},
    "06": {"cost_usd": 10**400},
    "07": {"cost_usd": Decimal("1e999")},
    "08": {"text": "half \ud800"},
    "09": {"text": b"\xff"},
    "10": {"text": 5},
    "11": {"text": ["a"], "notes": {"a": 1}, "output_tokens": 7},
    "12": {"failure_reason": "unheard-of"},
    "13": {"failure_reason": 5},
}
"""What a table of answers cannot hold, by the end of a key."""
HELD = {
    "14": {"text": "nul \0 and \u2028 and \U0010ffff"},
    "15": {"text": "x" * 5_000_000},
    "16": {"input_tokens": 2**63 - 1, "cost_usd": float("inf")},
    "17": {"attempt": 7},
    "18": {"attempt": None},
    "19": {"failure_reason": "refused", "failure_detail": "no \udcff"},
}


class Hostile(Stage):
    """Gives rows that no table can hold, among others."""

    resources = WorkerResources(cpus=0, in_flight=8)

    async def __call__(self, row: Row) -> Row:
        end = row["key"][-2:]
        return row | {"reviewer": "r", "text": "fine"} | (UNHELD | HELD).get(end, {})


class Deadly(Stage):
    """Ends its own process on one key, as a decoder with a hole does."""

    resources = WorkerResources(cpus=1, in_flight=4)

    def __init__(self, folder: Path, key: str, *, times: int) -> None:
        self._folder, self._key, self._times = folder, key, times

    def __call__(self, row: Row) -> Row:
        if row["key"] == self._key:
            deaths = len(list(self._folder.glob("death-*")))
            if deaths < self._times:
                (self._folder / f"death-{deaths}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return row | {"text": "lived"}


class Crowded(Stage):
    """Remembers the largest number of rows that were inside at once, in a file."""

    resources = WorkerResources(cpus=1, in_flight=3)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def setup(self) -> None:
        self._inside, self._guard = 0, threading.Lock()

    def __call__(self, row: Row) -> Row:
        with self._guard:
            self._inside += 1
            (self._folder / f"inside-{self._inside}").touch()
        time.sleep(0.005)
        with self._guard:
            self._inside -= 1
        return row


class RunnerKit:
    """Inherit, provide a `runner` fixture, and the whole contract runs."""

    def test_rows_failures_and_scratch_columns_are_the_same_on_every_engine(
        self, runner: StageRunner, table: LanceTable
    ) -> None:
        summary = run_pending_questions(
            questions(40), [Decode(), Ask()], table=table, engine=runner, pace=PACE
        )
        rows = {row["key"]: row for row in table.rows()}
        assert len(rows) == 40
        assert summary.done == 28
        assert dict(summary.failures) == {"no-video": 4, "stage-failed": 8}
        assert rows["0001"]["text"] == "frames of 0001"
        assert rows["0001"]["latency_us"] == 5
        assert rows["0011"]["latency_us"] is None
        assert rows["0003"]["failure_detail"] == "sound only"
        assert rows["0007"]["failure_detail"] == "ValueError: seven"
        assert "must return a dict with the key" in rows["0008"]["failure_detail"]

    def test_a_second_run_asks_nothing_and_a_retry_replaces_failures_only(
        self, runner: StageRunner, table: LanceTable
    ) -> None:
        stages = [Decode(), Ask()]
        run_pending_questions(questions(20), stages, table=table, engine=runner, pace=PACE)
        again = run_pending_questions(questions(20), stages, table=table, engine=runner, pace=PACE)
        assert (again.already, again.done, again.failed) == (20, 0, 0)
        retried = run_pending_questions(
            questions(20), stages, table=table, engine=runner, pace=PACE, retry_failed=["no-video"]
        )
        assert dict(retried.failures) == {"no-video": 2}
        attempts = Counter(row["attempt"] for row in table.rows())
        assert attempts == {1: 18, 2: 2}

    def test_a_row_that_the_table_cannot_hold_is_a_failure_and_the_others_stay(
        self, runner: StageRunner, table: LanceTable
    ) -> None:
        asked = questions(40)
        for attempt in (1, 2):
            summary = run_pending_questions(
                asked, [Hostile()], table=table, engine=runner, retry_failed=["stage-failed"]
            )
            rows = {row["key"]: row for row in table.rows()}
            assert len(rows) == table.count() == 40
            unheld = [rows[f"00{end}"] for end in UNHELD]
            assert {row["failure_reason"] for row in unheld} == {"stage-failed"}
            assert {row["attempt"] for row in unheld} == {attempt}
        assert dict(summary.failures) == {"stage-failed": len(UNHELD)}
        detail = "the table of answers cannot store its input_tokens (int)"
        assert rows["0001"]["failure_detail"] == detail
        assert (rows["0001"]["reviewer"], rows["0001"]["text"]) == ("r", "fine")
        assert rows["0011"]["failure_detail"].endswith("its text (list), notes (dict)")
        assert rows["0011"]["output_tokens"] == 7
        assert "unheard-of" in rows["0012"]["failure_detail"]
        assert rows["0014"]["text"] == HELD["14"]["text"]
        assert len(rows["0015"]["text"]) == 5_000_000
        assert rows["0016"]["input_tokens"] == 2**63 - 1
        assert (rows["0017"]["attempt"], rows["0018"]["attempt"]) == (1, 1)
        assert rows["0019"]["failure_reason"] == "refused"
        assert rows["0019"]["failure_detail"] == "no \\udcff"
        assert [row["text"] for key, row in rows.items() if key > "0019"] == ["fine"] * 20

    def test_no_more_rows_are_in_a_stage_than_it_allows(
        self, runner: StageRunner, table: LanceTable, tmp_path: Path
    ) -> None:
        run_pending_questions(
            questions(30), [Crowded(tmp_path)], table=table, engine=runner, pace=PACE
        )
        inside = {int(path.name.partition("-")[2]) for path in tmp_path.glob("inside-*")}
        assert max(inside) <= 3
        assert max(inside) > 1

    def test_questions_that_lie_in_a_table_are_made_by_those_who_ask_them(
        self, runner: StageRunner, table: LanceTable, tmp_path: Path
    ) -> None:
        source = LanceTable(StorageLocation(str(tmp_path / "source.lance")), ANSWERS)
        run_pending_questions(questions(70), [Quiet()], table=source)
        stored = TableQuestionSource(source, _remade, where="key >= '0010'")
        summary = run_pending_questions(
            stored, [Decode(), Ask()], table=table, engine=runner, pace=PACE
        )
        assert (summary.done, summary.failed) == (42, 18)
        rows = {row["key"]: row for row in table.rows()}
        assert rows["0011"]["reviewer"] == "yes again"
        assert rows["0011"]["text"] == "frames of 0011"


def _remade(row: Row) -> Row:
    return {"reviewer": row["text"] + " again"}


class TestLocalRunner(RunnerKit):
    @pytest.fixture
    def runner(self) -> StageRunner:
        return LocalRunner()

    def test_ctrl_c_keeps_what_is_finished_and_blames_nobody(
        self, runner: StageRunner, table: LanceTable, tmp_path: Path
    ) -> None:
        finished: list[str] = []

        class Slow(Stage):
            resources = WorkerResources(cpus=0, in_flight=4)

            async def __call__(self, row: Row) -> Row:
                if row["key"] == "0030":
                    while len(finished) < 30:  # those before it are under way
                        await asyncio.sleep(0.01)
                    signal.raise_signal(signal.SIGINT)
                await asyncio.sleep(30 if row["key"] >= "0030" else 0.001)
                finished.append(row["key"])
                return row | {"text": "done"}

        book = tmp_path / "book"
        with pytest.raises(KeyboardInterrupt):
            run_pending_questions(questions(90), [Slow()], table=table, engine=runner, ledger=book)
        assert {row["key"] for row in table.rows()} == {f"{n:04d}" for n in range(30)}
        with ItemStartLog(book) as ledger:
            assert ledger.deaths("0030/1") == 0

    def test_an_error_in_the_questions_ends_the_run_and_keeps_what_is_finished(
        self, runner: StageRunner, table: LanceTable
    ) -> None:
        def broken() -> Iterator[Row]:
            yield from questions(200)
            msg = "the benchmark ends in the middle of a line"
            raise OSError(msg)

        with pytest.raises(OSError, match="middle of a line"):
            run_pending_questions(broken(), [Decode()], table=table, engine=runner)
        assert table.count() == 64 + 128

    def test_a_slow_committer_slows_the_stages(
        self, runner: StageRunner, table: LanceTable
    ) -> None:
        asked, committed = [0], [0]
        gap: list[int] = []

        class Quick(Stage):
            resources = WorkerResources(cpus=0, in_flight=4)

            async def __call__(self, row: Row) -> Row:
                asked[0] += 1
                gap.append(asked[0] - committed[0])
                return row

        def slowly(step: str, n_rows: int) -> None:
            time.sleep(0.02)
            committed[0] += n_rows if step == "committed" else 0

        pace = CommitPace(rows=5, seconds=9)
        run_pending_questions(
            questions(200), [Quick()], table=table, engine=runner, pace=pace, observe=slowly
        )
        assert max(gap) <= 4 + 4 * 5

    def test_a_row_that_is_asked_again_begins_without_deaths(
        self, runner: StageRunner, table: LanceTable, tmp_path: Path
    ) -> None:
        book, rows = tmp_path / "book", [{"key": "0003"}]
        run_pending_questions(rows, [Decode()], table=table, engine=runner, ledger=book)
        book.write_text("+0003/1\n+0003/1\n")
        stage = Here(os.getpid())
        run_pending_questions(
            rows, [stage], table=table, engine=runner, ledger=book, retry_failed=ALL_FAILURES
        )
        assert [row["text"] for row in table.rows()] == ["here"]


class Here(Stage):
    """Says whether it is in the process that it was made in."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def __call__(self, row: Row) -> Row:
        return row | {"text": "here" if os.getpid() == self._pid else "elsewhere"}


class Quiet(Stage):
    resources = WorkerResources(cpus=0, in_flight=8)

    async def __call__(self, row: Row) -> Row:
        return row | {"text": "yes"}


@RAY_WARNS_OF_ITSELF
class TestKilledRayWorker:
    @pytest.fixture
    def runner(self, ray_cluster: None) -> StageRunner:
        from ray import cloudpickle

        from unreel.engine.ray_runner import RayRunner

        # Workers cannot import test modules, so their classes travel whole.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        return RayRunner(workers=1)

    def test_a_worker_that_is_killed_once_costs_nobody_a_row(
        self, runner: StageRunner, table: LanceTable, tmp_path: Path
    ) -> None:
        stage = Deadly(tmp_path, "0005", times=1)
        summary = run_pending_questions(
            questions(24), [stage], table=table, engine=runner, pace=PACE
        )
        assert (summary.done, summary.failed) == (24, 0)


@pytest.mark.slow
@pytest.mark.timeout(900)
class TestRayRunner(TestKilledRayWorker, RunnerKit):
    def test_a_row_that_kills_its_worker_each_time_is_quarantined_and_all_others_finish(
        self, runner: StageRunner, table: LanceTable, tmp_path: Path
    ) -> None:
        stage = Deadly(tmp_path, "0005", times=99)
        summary = run_pending_questions(
            questions(24), [stage], table=table, engine=runner, pace=PACE
        )
        assert (summary.done, summary.quarantined) == (23, 1)
        deaths, needed = len(list(tmp_path.glob("death-*"))), DEATHS_IN_COMPANY + DEATHS_ALONE
        # Ray may start the block of a dead worker once more before each death is in the ledger.
        assert needed <= deaths <= 2 * needed
        (row,) = table.rows(where="failure_reason IS NOT NULL")
        assert (row["key"], row["failure_reason"]) == ("0005", "quarantined")


@RAY_WARNS_OF_ITSELF
def test_both_engines_write_the_same_table(ray_cluster: None, tmp_path: Path) -> None:
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    tables = {}
    for engine in ("local", "ray"):
        table = LanceTable(StorageLocation(str(tmp_path / engine)), ANSWERS)
        run_pending_questions(
            questions(60), [Decode(), Ask()], table=table, engine=engine, pace=PACE
        )
        tables[engine] = {row["key"]: row for row in table.rows()}
    assert tables["local"] == tables["ray"]


def test_an_unknown_engine_names_the_known_ones(table: LanceTable) -> None:
    with pytest.raises(UnknownNameError, match="Known: local, ray"):
        run_pending_questions([], [Quiet()], table=table, engine="dask")


def test_a_table_in_a_store_needs_a_ledger_of_its_own() -> None:
    with pytest.raises(InvalidSettingError, match="Name a local file"):
        run_pending_questions(
            [], [Quiet()], table=LanceTable(StorageLocation("s3://bucket/answers"), ANSWERS)
        )
