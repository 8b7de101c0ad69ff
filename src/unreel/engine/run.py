"""Run of a job: computes the missing rows of a table, commits each once, and counts them."""

import itertools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import FailureReason
from unreel.core.registry import LazyImport, NamedObjectRegistry
from unreel.engine.stage import Row, Stage
from unreel.engine.table_questions import DueTableQuestions, TableQuestionSource

if TYPE_CHECKING:
    from unreel.engine.committer import AddUp, CommitPace
    from unreel.engine.progress import Progress
    from unreel.engine.stage import StageRunner
    from unreel.engine.table import LanceTable

ENGINES: "NamedObjectRegistry[Callable[..., StageRunner]]" = NamedObjectRegistry(
    "engine",
    {
        "local": LazyImport("unreel.engine.local_runner:LocalRunner"),
        "ray": LazyImport("unreel.engine.ray_runner:RayRunner", extra="ray"),
    },
)

ALL_FAILURES = frozenset(reason.value for reason in FailureReason)

_COMMITTER = LazyImport("unreel.engine.committer:TableCommitter", extra="eval")
_PACE = LazyImport("unreel.engine.committer:CommitPace", extra="eval")
_DUE = LazyImport("unreel.engine.pending_questions:PendingQuestionFilter", extra="eval")

T = TypeVar("T")
_AHEAD = 4096


class PrefetchedIterator(Generic[T]):
    """Iterator that reads its first items when it is created; it can be iterated once."""

    def __init__(self, items: Iterable[T]) -> None:
        self._source = iter(items)
        self.first = list(itertools.islice(self._source, _AHEAD))
        self.is_whole = len(self.first) < _AHEAD
        """Whether `first` contains all items."""

    def __iter__(self) -> Iterator[T]:
        return itertools.chain(self.first, self._source)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunSummary:
    """Counts and duration of one call that ran the pending rows of a job."""

    already: int
    """Number of questions that already had a row, or are repeats."""
    done: int
    failures: Mapping[str, int]
    """Number of new failure rows by reason, including quarantined ones."""
    seconds: float

    @property
    def failed(self) -> int:
        """Return the number of new failure rows."""
        return sum(self.failures.values())

    @property
    def quarantined(self) -> int:
        """Return the number of rows that were abandoned because their worker crashed each time."""
        return self.failures.get(FailureReason.QUARANTINED.value, 0)


def run_pending_questions(  # noqa: PLR0913  two things to run, one place to keep them; the rest has defaults
    questions: Iterable[Row],
    stages: Sequence[Stage],
    *,
    table: "LanceTable",
    engine: "str | StageRunner" = "local",
    pace: "CommitPace | None" = None,
    retry_failed: Collection[str] = (),
    ledger: Path | None = None,
    add_up: "AddUp" = lambda _rows, _totals: None,
    on_due: Callable[[int], None] | None = None,
    most_due: int | None = None,
    on_progress: "Callable[[Progress], None]" = lambda _progress: None,
    observe: Callable[[str, int], None] = lambda _step, _rows: None,
) -> JobRunSummary:
    """Run every question that has no row in `table` through `stages`, and commit each result once.

    Questions are rows with a unique `key`; they are read as they are needed, so the stream may be
    longer than memory. After a kill at any moment, a second call keeps all committed rows. Raise
    `UnreadableSourceError` if another run writes the table, it has a key twice, or its store does
    not enforce conditional puts.

    Args:
        questions: Input rows; those of a `TableQuestionSource` are read in the workers.
        stages: Steps that each row takes, in order; at least one.
        table: Table of the results, whose keys count as answered.
        engine: `local`, `ray`, or a runner of your own.
        pace: Rules for commits; by default they adapt to the rate, see `CommitPace`.
        retry_failed: Failure reasons whose rows are computed again; `ALL_FAILURES` for every one.
        ledger: File of starts and finishes; by default next to the table, required if it is remote.
        add_up: Callback that adds the job's counts of committed rows to `Progress.totals`.
        on_due: Callback with the number of pending rows; if they are too many, with `most_due` or never.
        most_due: Upper limit of that number.
        on_progress: Callback after each commit, from another thread, with the counts so far.
        observe: Callback at the named steps of a commit: for tests that kill a run.
    """
    runner = ENGINES.load(engine)() if isinstance(engine, str) else engine
    start_log = _get_start_log_path(table, ledger)
    due = _DUE.load()(table, retry_failed)
    began_s = time.monotonic()
    committer = _COMMITTER.load()(
        table, pace=pace or _PACE.load()(), add_up=add_up, on_commit=on_progress, observe=observe
    )
    with committer as sink:
        # The table is first read at the first question, when the lock excludes other writers.
        rows: Iterable[Row] = _count_rows(due.sift(questions), committer.progress)
        if on_due is not None:
            rows = ahead = PrefetchedIterator(rows)
            if ahead.is_whole or most_due is not None:
                on_due(len(ahead.first) if ahead.is_whole else max(len(ahead.first), most_due or 0))
        if isinstance(questions, TableQuestionSource):
            rows = DueTableQuestions(rows, questions)
        runner.run(rows, stages, sink=sink, ledger=start_log)
    return JobRunSummary(
        already=due.already,
        done=committer.progress.done,
        failures=dict(committer.progress.failures),
        seconds=time.monotonic() - began_s,
    )


def _count_rows(rows: Iterable[Row], progress: "Progress") -> Iterator[Row]:
    n = 0
    for n, row in enumerate(rows, start=1):  # noqa: B007  the last number is the total
        yield row
    progress.due = n


@contextmanager
def open_shared_runner(engine: "str | StageRunner") -> "Iterator[StageRunner]":
    """Provide one runner for several runs: the first run starts it, the end of the block stops it."""
    runner: StageRunner = ENGINES.load(engine)() if isinstance(engine, str) else engine
    with ExitStack() as stack:
        if isinstance(runner, AbstractContextManager):
            stack.enter_context(runner)
        yield runner


def _get_start_log_path(table: "LanceTable", ledger: Path | None) -> Path:
    if ledger is not None:
        return ledger
    if not table.place.is_local:
        raise InvalidSettingError(
            "ledger",
            "a table in an object store has no folder next to it",
            "Name a local file that the next run on this machine will find again",
        )
    return table.place.path.with_name(table.place.path.name + ".ledger")
