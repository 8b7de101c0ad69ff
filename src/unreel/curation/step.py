"""Steps of a curation: requests, their keys, and one table of results for each step.

A key depends on the step, its version, its settings and the request. A changed setting
therefore repeats only that step and the steps that depend on its results.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import compress, islice
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from unreel.core.clip import ClipId
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason, build_damaged_row_failure, read_failure
from unreel.core.identity import digest
from unreel.core.output_files import OutputDirectory
from unreel.core.small_documents import parse_object
from unreel.curation.findings import FINDINGS
from unreel.curation.keys import SubjectKeys
from unreel.engine.committer import CommitPace
from unreel.engine.key_index import as_texts
from unreel.engine.location import StorageLocation
from unreel.engine.media_stage import MediaStage
from unreel.engine.pending import PendingKeys
from unreel.engine.progress import NO_CALLBACKS, JobCallbacks
from unreel.engine.run import run as run_stages
from unreel.engine.run import shared_runner
from unreel.engine.runner import StageRunner
from unreel.engine.stage import InFlightLimit, Row, Stage, WorkerResources, to_failed_row
from unreel.engine.storage_access import StorageAccess, find_change, local_copy
from unreel.engine.table import LanceTable
from unreel.media.reader import MediaReader

Found = TypeVar("Found")
"""What a step finds out about one subject: a frozen value of its own."""
Given = Mapping[str, Any]
"""What decides an answer besides the clip, as JSON."""
Look = Callable[[MediaReader, Path, Given], Found | Failure]
"""Finds out about the clip in a file, given what else the question says; it must pickle."""
Decide = Callable[[], Callable[[int], Found]]
"""Function that decides about a complete set, for the subject at an index."""

TRANSIENT: Final = frozenset(
    reason.value
    for reason in (
        FailureReason.OUT_OF_TIME,
        FailureReason.CONNECTION_LOST,
        FailureReason.RATE_LIMITED,
        FailureReason.SERVER_ERROR,
    )
)
"""Failures of the hour, not of the clip: they are tried again."""
_TRIES: Final = 3
_NO_ROW: Final = Failure(FailureReason.UNSTATED, "the step has no row for it")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSubject:
    """Request of a step: a file, and all other inputs that determine the result."""

    clip: ClipId
    """The id of the file's bytes; "" where they are not known yet."""
    name: str
    location: str
    given: Given = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepName(Generic[Found]):
    """A step at one version with its settings: the part of a key that all its subjects share."""

    name: str
    version: int
    finds: TypeAdapter[Found]
    """Type of its results in the table."""
    settings: Given = field(default_factory=dict)

    def key(self, subject: StepSubject) -> str:
        """Return the key of this step's request for `subject`."""
        return digest(
            "curate",
            self.name,
            str(self.version),
            to_json(self.settings),
            subject.clip,
            to_json(subject.given),
        )

    def read(self, row: Row) -> Found | Failure:
        """Return the stored result of a row; invalid JSON counts as a failure.

        Raises:
            UnreadableSourceError: It says something that this step never finds.
        """
        if row["failure_reason"] is not None:
            return read_failure(row["failure_reason"], row["failure_detail"])
        try:
            return self.finds.validate_python(parse_object((row["found"] or "").encode()))
        except InvalidValueError as error:
            return build_damaged_row_failure(str(error))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = f"a finding that it never makes ({first['msg'].lower()})"
            remedy = "Something else wrote its table: name another folder, or make it again"
            source = f"steps/{self.name}"
            raise UnreadableSourceError(source, problem, remedy) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationContext:
    """Tables of a curation, and the execution of its steps."""

    place: StorageLocation
    access: StorageAccess
    ledgers: Path
    engine: str | StageRunner = "local"
    retry_failed: Collection[str] = TRANSIENT
    pace: CommitPace | None = None
    callbacks: JobCallbacks = NO_CALLBACKS
    on_taken: Callable[[str, int], None] = lambda _step, _pieces: None
    """Called after a step with the number of remaining segments."""

    def table(self, step: str) -> LanceTable:
        """Return the table of a step."""
        return LanceTable(self.place / "steps" / f"{step}.lance", FINDINGS)

    @property
    def media(self) -> StorageLocation:
        """Return the location of clips made by this curation, named by content."""
        return self.place / "media"

    def ask(
        self, step: StepName[Found], subjects: Iterable[StepSubject], look: Look[Found]
    ) -> Iterator[Found | Failure]:
        """Yield the result of `look` for each subject in order; stored results are reused.

        All questions are processed before this returns, and results are read lazily. `subjects` are
        iterated more than once.
        """
        return self.ask_stage(step, subjects, ClipStage(look, self.access))

    def ask_stage(
        self, step: StepName[Found], subjects: Iterable[StepSubject], stage: Stage
    ) -> Iterator[Found | Failure]:
        """Run `stage` on the subjects and return the results in order, like `ask`.

        The stage reads `_given` and writes `found`. Transient failures are retried immediately, so that
        a busy machine does not determine which clips a benchmark contains.
        """
        table, keys = self.table(step.name), SubjectKeys(map(step.key, subjects))
        for _ in range(_TRIES):
            due = self._due(table, keys)
            if not due.any():
                break  # starting an engine to learn this costs seconds
            self.callbacks.on_due(step.name, int(np.count_nonzero(due)))
            rows = (_build_step_row(step, subject) for subject in compress(subjects, due))
            failures = self._run(table, step.name, rows, stage, engine=self.engine)
            if not TRANSIENT & failures.keys():
                break
        return _iter_results(step, table, keys)

    def recall(
        self, step: StepName[Found], subjects: Iterable[StepSubject]
    ) -> Iterator[Found | Failure]:
        """Yield the stored result for each subject in order."""
        return _iter_results(step, self.table(step.name), SubjectKeys(map(step.key, subjects)))

    def settle(
        self, step: StepName[Found], subjects: Iterable[StepSubject], decide: Decide[Found]
    ) -> Iterator[Found]:
        """Yield the results of `decide` for the whole set, one per subject, and store them as rows.

        The results apply to this exact set, in any order: another subject leads to new decisions.
        """
        table, alone = self.table(step.name), SubjectKeys(map(step.key, subjects))
        order = alone.order()
        whole = _bind_step_to_set(step, alone, order)
        first = np.zeros(len(alone), np.bool_)
        first[order] = True
        keys = SubjectKeys(map(whole.key, subjects))
        if self._due(table, keys).any():
            decided = decide()
            rows = (
                _build_step_row(whole, subject) | {"found": to_json(as_plain(decided(place)))}
                for place, subject in enumerate(subjects)
                if first[place]
            )
            self.callbacks.on_due(step.name, len(order))
            self._run(table, step.name, rows, _DecisionWriter(), engine="local")
        return _read_settled(whole, table, keys, decide)

    def conclude(
        self, step: StepName[Found], subjects: Iterable[StepSubject], decide: Callable[[], Found]
    ) -> Found:
        """Return the result of `decide` for the whole set, stored as the row of the subject with the first key."""
        table, alone = self.table(step.name), SubjectKeys(map(step.key, subjects))
        order = alone.order()
        (first,) = islice(subjects, order[0], order[0] + 1)
        row = _build_step_row(_bind_step_to_set(step, alone, order), first)
        (kept,) = _iter_results(step, table, SubjectKeys([row["key"]]))
        if not isinstance(kept, Failure):
            return kept
        decided = decide()
        rows = [row | {"found": to_json(as_plain(decided))}]
        self.callbacks.on_due(step.name, 1)
        self._run(table, step.name, rows, _DecisionWriter(), engine="local")
        return decided

    def put_through(
        self, name: str, rows: Iterable[Row], stage: Stage, take: Callable[[Row], None]
    ) -> None:
        """Run `rows` through `stage`, whose side effects are its only result.

        The callback `take` gets each finished row, from any thread.
        """
        OutputDirectory(self.ledgers.parent).make(self.ledgers.name)
        with shared_runner(self.engine) as runner:
            runner.run(
                rows, [stage], sink=_RowReporter(take), ledger=self.ledgers / f"{name}.ledger"
            )

    def _due(self, table: LanceTable, keys: SubjectKeys) -> NDArray[np.bool_]:
        """Return a mask of keys without a row, or with one to be made again; a duplicate key counts once."""
        due = PendingKeys(table, self.retry_failed)
        tries = [due.next_tries(texts) for chunk in keys.chunks() for texts in as_texts(chunk)]
        return np.concatenate([np.empty(0, np.int32), *tries]) > 0

    def _run(
        self,
        table: LanceTable,
        name: str,
        rows: Iterable[Row],
        stage: Stage,
        *,
        engine: str | StageRunner,
    ) -> Mapping[str, int]:
        """Put `rows` through `stage` into the table; new failures by their reason."""
        OutputDirectory(self.ledgers.parent).make(self.ledgers.name)
        return run_stages(
            rows,
            [stage],
            table=table,
            engine=engine,
            pace=self.pace,
            retry_failed=self.retry_failed,
            ledger=self.ledgers / f"{name}.ledger",
            on_progress=lambda progress: self.callbacks.on_step(name, progress),
            observe=self.callbacks.observe,
        ).failures


def _bind_step_to_set(
    step: StepName[Found], alone: SubjectKeys, order: NDArray[np.intp]
) -> StepName[Found]:
    """Return the step for one set: its members are among the settings."""
    return replace(step, settings={"settings": step.settings, "set": alone.digest(order)})


def _iter_results(
    step: StepName[Found], table: LanceTable, keys: SubjectKeys
) -> Iterator[Found | Failure]:
    for chunk in keys.chunks():
        found = {row["key"]: row for row in table.get(chunk)}
        for key in chunk:
            yield step.read(found[key]) if key in found else _NO_ROW


def _read_settled(
    step: StepName[Found], table: LanceTable, keys: SubjectKeys, decide: Decide[Found]
) -> Iterator[Found]:
    """Yield the decision for each item; for a damaged row, the decision made again."""
    decided: Callable[[int], Found] | None = None
    rows = _iter_results(step, table, keys)
    for place, found in enumerate(rows):
        if isinstance(found, Failure):
            decided = decided or decide()
            yield decided(place)
        else:
            yield found


class ClipStage(MediaStage):
    """Stage that opens each clip through a media reader and stores the result."""

    def __init__(self, look: Look[Any], access: StorageAccess) -> None:
        n_processors = os.cpu_count() or 1
        super().__init__(
            access, WorkerResources(in_flight=n_processors, limit=InFlightLimit.PROCESSORS)
        )
        self._look = look

    def __call__(self, row: Row) -> Row:
        with local_copy(row["location"], self._access) as file:
            found = self._look(self._reader, file, json.loads(row["_given"]))
            changed = find_change(row["clip"], file) if row["clip"] else None
        if changed is not None:
            return to_failed_row(row, changed)
        if isinstance(found, Failure):
            return to_failed_row(row, found)
        kept = as_plain(found)
        return row | {"clip": kept.get("clip", row["clip"]), "found": to_json(kept)}


class _RowReporter:
    """Sink that passes finished rows to a callback and does not store them."""

    def __init__(self, take: Callable[[Row], None]) -> None:
        self._take = take

    def offer(self, row: Row) -> bool:
        self.add(row)
        return True

    def add(self, row: Row) -> None:
        self._take(row)

    def require_ready(self) -> None:
        """Do nothing, because this sink stores no rows."""


class _DecisionWriter(Stage):
    """Stage that stores decisions that were already made."""

    def __call__(self, row: Row) -> Row:
        return row


def as_plain(found: object) -> Any:
    """Return the result of a step as JSON-compatible values."""
    kind: Any = type(found)
    return _build_type_adapter(kind).dump_python(found, mode="json")


@cache
def _build_type_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def to_json(value: object) -> str:
    """Return `value` as canonical JSON: equal values give equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _build_step_row(step: StepName[Any], subject: StepSubject) -> Row:
    return {
        "key": step.key(subject),
        "name": subject.name,
        "location": subject.location,
        "clip": subject.clip,
        "_given": to_json(subject.given),
    }
