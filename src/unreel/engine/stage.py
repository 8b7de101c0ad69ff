"""One step of a job, independent of the engine that runs it, and the interface of engines.

A row is a dict of values that Arrow can hold (None, bool, int, float, str, bytes, and lists and
dicts of these), identified by its `key`. A column whose name begins with `_` is a scratch
column: it is passed between stages (frames, sound) and never stored. A failed row has
`failure_reason` and `failure_detail`.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, FailureReason
from unreel.engine.storage_access import ClipAccessSettings
from unreel.media.access import open_media_reader

Row = dict[str, Any]

DETAIL_CHARACTERS = 2_000
"""Maximum length of a failure's detail, because some libraries put whole bodies into their messages."""


class InFlightLimitScope(StrEnum):
    """Scope of a stage's limit of rows in flight: per worker, per machine or for all workers."""

    WORKER = "worker"
    """Limit per worker, as for weights on a GPU or a batch."""
    PROCESSORS = "processors"
    """Limit per machine, with one processor per row: a worker gets as many rows as it has processors."""
    SERVICE = "service"
    """Limit for all workers together, because the queried service counts connections."""
    ALONE = "alone"
    """Limit of a single worker, which tracks the budget."""


class StageServiceClient(Protocol):
    """Interface of a stage's service client: GPUs, and whether it has a budget."""

    @property
    def gpus(self) -> float: ...

    @property
    def is_metered(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerResources:
    """Resources of one worker of a stage, and its number of concurrent rows."""

    cpus: float = 1.0
    gpus: float = 0.0
    in_flight: int = 1
    limit: InFlightLimitScope = InFlightLimitScope.WORKER

    @classmethod
    def asking(cls, client: StageServiceClient, in_flight: int) -> Self:
        """Return the resources of a worker that queries the client `client`.

        The limit of rows in flight applies to a single worker if the client is metered, else to all
        workers together; a client that uses GPUs has the limit per worker.
        """
        limit = InFlightLimitScope.ALONE if client.is_metered else InFlightLimitScope.SERVICE
        if client.gpus:
            limit = InFlightLimitScope.WORKER
        return cls(gpus=client.gpus, in_flight=in_flight, limit=limit)

    def __post_init__(self) -> None:
        if self.cpus < 0 or self.gpus < 0 or self.in_flight < 1:
            raise InvalidValueError(
                f"resources must satisfy cpus, gpus >= 0 and in_flight >= 1, not {self}"
            )


class Stage:
    """A step that turns one row into one row with the same `key`; subclasses define `__call__`.

    An instance is created where the job starts and copied to its workers, so it must pickle: open
    clients and load weights in `setup`. A sync `__call__` runs in up to `in_flight` threads, an
    async `__call__` in a single event loop. An exception becomes a failure row, so `__call__` may
    raise.
    """

    resources: WorkerResources = WorkerResources()

    def setup(self) -> None:
        """Prepare the stage in a worker before its first row; an error here ends the job."""

    def __call__(self, row: Row) -> Any:
        """Return the new row, or an awaitable of the new row."""
        raise NotImplementedError

    def close(self) -> Any:
        """Release the resources of the stage in a worker that ends normally; may be async."""


def convert_to_failed_row(row: Row, failure: Failure) -> Row:
    """Return the row as a failure, without its scratch columns."""
    detail = failure.detail[:DETAIL_CHARACTERS]
    return drop_scratch_columns(row) | {
        "failure_reason": failure.reason.value,
        "failure_detail": detail,
    }


def is_failed_row(row: Row) -> bool:
    """Return whether the row has a failure reason."""
    return row.get("failure_reason") is not None


def drop_scratch_columns(row: Row) -> Row:
    """Return the row without its scratch columns."""
    return {name: value for name, value in row.items() if not name.startswith("_")}


def convert_error_to_failure(error: Exception) -> Failure:
    """Return the failure for an exception of a stage: the attached failure, or one built from its message."""
    carried = getattr(error, "failure", None)
    if isinstance(carried, Failure):
        return carried
    detail = f"{type(error).__name__}: {error}"
    match error:
        case MemoryError():
            return Failure(FailureReason.OUT_OF_MEMORY, detail)
        case TimeoutError():
            return Failure(FailureReason.OUT_OF_TIME, detail)
        case _:
            return Failure(FailureReason.STAGE_FAILED, detail)


class MediaStage(Stage):
    """Stage with a media reader from `setup` to `close`; the reader is not pickled."""

    opened: ClassVar[frozenset[str]] = frozenset({"_open", "_reader"})
    """Attributes that `setup` opens and that are not pickled; a subclass that opens more adds them."""

    def __init__(self, access: ClipAccessSettings, resources: WorkerResources) -> None:
        self.resources = resources
        self._access = access

    def setup(self) -> None:
        self._open = ExitStack()
        access = self._access
        self._reader = self._open.enter_context(
            open_media_reader(access.settings, trusted=access.trusted)
        )

    def close(self) -> Any:
        self._open.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in self.opened}


class RowSink(Protocol):
    """Interface of the thread-safe target of finished rows."""

    def offer(self, row: Row) -> bool:
        """Accept the row; return `False` if the sink is full."""

    def add(self, row: Row) -> None:
        """Accept the row; wait while the sink is full."""

    def require_ready(self) -> None:
        """Raise if the results of further rows could not be stored; called before a row is started."""


class StageRunner(Protocol):
    """Interface of an engine that runs every row once through all stages into the sink, in any order."""

    def run(
        self, rows: Iterable[Row], stages: Sequence[Stage], *, sink: RowSink, ledger: Path
    ) -> None:
        """Run every row through the stages, and pass finished rows to `sink`.

        After an interrupt the sink has all rows that were finished.
        """


def format_start_log_item(row: Row) -> str:
    """Return the row's name in the start log: key and attempt, so that a retry starts with 0 crashes."""
    return f"{row['key']}/{row['attempt']}"
