"""Execution of curation steps: requests, their keys, and one table of results for each step.

A key depends on the step, its version, its settings and the request. A changed setting
therefore repeats only that step and the steps that depend on its results.
"""

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import compress, islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from unreel.core.chunks import LOOKUP_ROWS
from unreel.core.clip import ClipId
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.failure import (
    Failure,
    FailureReason,
    build_damaged_row_failure,
    parse_stored_failure,
)
from unreel.core.input_files import parse_json_object
from unreel.core.output_files import OutputDirectory
from unreel.engine.committer import CommitPace
from unreel.engine.key_index import iter_key_arrays
from unreel.engine.location import StorageLocation
from unreel.engine.pending_questions import PendingQuestionFilter
from unreel.engine.progress import NO_CALLBACKS, JobCallbacks
from unreel.engine.run import open_shared_runner
from unreel.engine.run import run_pending_questions as run_stages
from unreel.engine.schema import TableSchema
from unreel.engine.stage import (
    InFlightLimitScope,
    MediaStage,
    Row,
    Stage,
    StageRunner,
    WorkerResources,
    convert_to_failed_row,
)
from unreel.engine.storage_access import (
    ClipAccessSettings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.engine.table import LanceTable
from unreel.media.reader import MediaReader

_BYTES = 32
_LENGTH = (2 * _BYTES).to_bytes(8, "big")
_HASHED = 1 << 14


class CurationRequestKeys:
    """Keys of a curation step's requests as packed bytes, in the order of the requests."""

    def __init__(self, keys: Iterable[str]) -> None:
        packed = bytearray()
        for key in keys:
            packed += bytes.fromhex(key)
        self.packed = np.frombuffer(packed, f"S{_BYTES}")

    def __len__(self) -> int:
        return len(self.packed)

    def chunks(self) -> Iterator[list[str]]:
        """Yield all keys as hexadecimal texts, in chunks of the size of one table lookup."""
        for start in range(0, len(self), LOOKUP_ROWS):
            yield _format_hex_keys(self.packed[start : start + LOOKUP_ROWS])

    def order(self) -> NDArray[np.intp]:
        """Return the index of the first occurrence of each distinct key, in key order."""
        return np.unique(self.packed, return_index=True)[1]

    def digest(self, order: NDArray[np.intp]) -> str:
        """Return `core.identity.digest` of the keys at the indices `order`, without building their list."""
        state = hashlib.sha256()
        for start in range(0, len(order), _HASHED):
            keys = _format_hex_keys(self.packed[order[start : start + _HASHED]])
            state.update(b"".join(_LENGTH + key.encode() for key in keys))
        return state.hexdigest()


def _format_hex_keys(packed: NDArray[np.bytes_]) -> list[str]:
    rows = np.ascontiguousarray(packed).view(np.uint8).reshape(-1, _BYTES)
    return [row.tobytes().hex() for row in rows]


FINDINGS = TableSchema(
    name="findings",
    version=1,
    columns={"name": "string", "location": "string", "clip": "string", "found": "string"},
)
"""Schema of the results of a step, one row for each clip; `found` is JSON."""


Found = TypeVar("Found")
"""Result of a step for one request: a frozen value."""
Given = Mapping[str, Any]
"""JSON values that determine a result besides the clip."""
Look = Callable[[MediaReader, Path, Given], Found | Failure]
"""Function that computes the result from the clip's file and the other inputs; it must be picklable."""
Decide = Callable[[], Callable[[int], Found]]
"""Function that decides about a complete set, and returns a function from an index to the result."""

TRANSIENT = frozenset(
    reason.value
    for reason in (
        FailureReason.OUT_OF_TIME,
        FailureReason.CONNECTION_LOST,
        FailureReason.RATE_LIMITED,
        FailureReason.SERVER_ERROR,
    )
)
"""Transient failures, which do not depend on the clip and are retried."""
_TRIES = 3
_NO_ROW = Failure(FailureReason.UNSTATED, "the step has no row for it")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationStepRequest:
    """Request to a curation step about one file, with all other inputs that determine the result."""

    clip: ClipId
    """Hash of the file's bytes; "" if it is not known yet."""
    name: str
    location: str
    given: Given = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedCurationStep(Generic[Found]):
    """Curation step with its version and settings, from which the keys of its requests are computed."""

    name: str
    version: int
    finds: TypeAdapter[Found]
    """Type of the results in the table."""
    settings: Given = field(default_factory=dict)

    def key(self, request: CurationStepRequest) -> str:
        """Return the key under which the result for `request` is stored: a hash of step and request."""
        return digest(
            "curate",
            self.name,
            str(self.version),
            format_canonical_json(self.settings),
            request.clip,
            format_canonical_json(request.given),
        )

    def read(self, row: Row) -> Found | Failure:
        """Parse the step's result in a table row; a row with invalid JSON counts as a failure."""
        if row["failure_reason"] is not None:
            return parse_stored_failure(row["failure_reason"], row["failure_detail"])
        try:
            return self.finds.validate_python(parse_json_object((row["found"] or "").encode()))
        except InvalidValueError as error:
            return build_damaged_row_failure(str(error))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise UnreadableSourceError(
                f"steps/{self.name}",
                f"an unknown finding ({first['msg'].lower()})",
                "Another program wrote its table: name another folder, or make it again",
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationContext:
    """Storage and execution settings of a curation, which run its steps and store their results."""

    place: StorageLocation
    access: ClipAccessSettings
    ledgers: Path
    engine: str | StageRunner = "local"
    retry_failed: Collection[str] = TRANSIENT
    pace: CommitPace | None = None
    callbacks: JobCallbacks = NO_CALLBACKS
    on_taken: Callable[[str, int], None] = lambda _step, _pieces: None
    """Callback after each step, with its name and the number of remaining segments."""

    def table(self, step: str) -> LanceTable:
        return LanceTable(self.place / "steps" / f"{step}.lance", FINDINGS)

    @property
    def media(self) -> StorageLocation:
        """Return the location of clips made by this curation, named by content."""
        return self.place / "media"

    def ask(
        self,
        step: VersionedCurationStep[Found],
        requests: Iterable[CurationStepRequest],
        look: Look[Found],
    ) -> Iterator[Found | Failure]:
        """Run the function `look` on each requested file and yield the results in order.

        Stored results are reused. All requests are processed before this returns; results are read
        lazily. `requests` are iterated more than once.
        """
        return self.ask_stage(step, requests, ClipReaderStage(look, self.access))

    def ask_stage(
        self,
        step: VersionedCurationStep[Found],
        requests: Iterable[CurationStepRequest],
        stage: Stage,
    ) -> Iterator[Found | Failure]:
        """Run `stage` on the requests `requests` and return the results in order, like `ask`.

        The stage reads `_given` and writes `found`. Transient failures are retried immediately, so
        that a busy machine does not determine which clips a benchmark contains.
        """
        table, keys = self.table(step.name), CurationRequestKeys(map(step.key, requests))
        for _ in range(_TRIES):
            due = self._due(table, keys)
            if not due.any():
                break  # starting an engine takes seconds
            self.callbacks.on_due(step.name, int(np.count_nonzero(due)))
            rows = (_build_step_row(step, subject) for subject in compress(requests, due))
            failures = self._run(table, step.name, rows, stage, engine=self.engine)
            if not TRANSIENT & failures.keys():
                break
        return _iter_stored_results(step, table, keys)

    def recall(
        self, step: VersionedCurationStep[Found], requests: Iterable[CurationStepRequest]
    ) -> Iterator[Found | Failure]:
        """Read the stored result of each request and yield them in order; a failure without a row."""
        return _iter_stored_results(
            step, self.table(step.name), CurationRequestKeys(map(step.key, requests))
        )

    def run_cached(
        self,
        step: VersionedCurationStep[Found],
        requests: Iterable[CurationStepRequest],
        decide: Decide[Found],
    ) -> Iterator[Found]:
        """Decide with `decide` about a complete set of requests; store and yield one result per request.

        The stored results apply to exactly this set, in any order: with any other set of requests,
        `decide` is called again.
        """
        table, alone = self.table(step.name), CurationRequestKeys(map(step.key, requests))
        order = alone.order()
        set_step = _add_request_set_to_settings(step, alone, order)
        first = np.zeros(len(alone), np.bool_)
        first[order] = True
        keys = CurationRequestKeys(map(set_step.key, requests))
        if self._due(table, keys).any():
            decided = decide()
            rows = (
                _build_step_row(set_step, subject)
                | {"found": format_canonical_json(to_json_values(decided(index)))}
                for index, subject in enumerate(requests)
                if first[index]
            )
            self.callbacks.on_due(step.name, len(order))
            self._run(table, step.name, rows, _PassThroughStage(), engine="local")

        stored = _iter_stored_results(set_step, table, keys)

        def iter_decisions() -> Iterator[Found]:
            decided: Callable[[int], Found] | None = None
            for index, result in enumerate(stored):
                if isinstance(result, Failure):  # a damaged or missing row
                    decided = decided or decide()
                    yield decided(index)
                else:
                    yield result

        return iter_decisions()

    def conclude(
        self,
        step: VersionedCurationStep[Found],
        requests: Iterable[CurationStepRequest],
        decide: Callable[[], Found],
    ) -> Found:
        """Return the stored result of a request set, or that of `decide`, stored at the smallest key."""
        table, alone = self.table(step.name), CurationRequestKeys(map(step.key, requests))
        order = alone.order()
        (first,) = islice(requests, order[0], order[0] + 1)
        row = _build_step_row(_add_request_set_to_settings(step, alone, order), first)
        (stored,) = _iter_stored_results(step, table, CurationRequestKeys([row["key"]]))
        if not isinstance(stored, Failure):
            return stored
        decided = decide()
        rows = [row | {"found": format_canonical_json(to_json_values(decided))}]
        self.callbacks.on_due(step.name, 1)
        self._run(table, step.name, rows, _PassThroughStage(), engine="local")
        return decided

    def put_through(
        self, name: str, rows: Iterable[Row], stage: Stage, take: Callable[[Row], None]
    ) -> None:
        """Run `rows` through `stage` without a table; the callback `take` gets finished rows, from any thread."""
        OutputDirectory(self.ledgers.parent).make(self.ledgers.name)
        with open_shared_runner(self.engine) as runner:
            ledger = self.ledgers / f"{name}.ledger"
            runner.run(rows, [stage], sink=_RowCallbackSink(take), ledger=ledger)

    def _due(self, table: LanceTable, keys: CurationRequestKeys) -> NDArray[np.bool_]:
        """Return a mask of the keys without a row or with a failure to retry; duplicates count once."""
        due = PendingQuestionFilter(table, self.retry_failed)
        tries = [
            due.next_tries(texts) for chunk in keys.chunks() for texts in iter_key_arrays(chunk)
        ]
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


def _add_request_set_to_settings(
    step: VersionedCurationStep[Found], request_keys: CurationRequestKeys, order: NDArray[np.intp]
) -> VersionedCurationStep[Found]:
    return replace(step, settings={"settings": step.settings, "set": request_keys.digest(order)})


def _iter_stored_results(
    step: VersionedCurationStep[Found], table: LanceTable, keys: CurationRequestKeys
) -> Iterator[Found | Failure]:
    for chunk in keys.chunks():
        rows = {row["key"]: row for row in table.get(chunk)}
        for key in chunk:
            yield step.read(rows[key]) if key in rows else _NO_ROW


class ClipReaderStage(MediaStage):
    """Stage that calls a function on each clip file, with a media reader, and returns its result."""

    def __init__(self, look: Look[Any], access: ClipAccessSettings) -> None:
        n_processors = os.cpu_count() or 1
        super().__init__(
            access, WorkerResources(in_flight=n_processors, limit=InFlightLimitScope.PROCESSORS)
        )
        self._look = look

    def __call__(self, row: Row) -> Row:
        with provide_local_clip_file(row["location"], self._access) as file:
            result = self._look(self._reader, file, json.loads(row["_given"]))
            changed = find_clip_change(row["clip"], file) if row["clip"] else None
        if changed is not None:
            return convert_to_failed_row(row, changed)
        if isinstance(result, Failure):
            return convert_to_failed_row(row, result)
        values = to_json_values(result)
        clip = values.get("clip", row["clip"])
        return row | {"clip": clip, "found": format_canonical_json(values)}


class _RowCallbackSink:
    """Sink that passes finished rows to a callback and does not store them."""

    def __init__(self, take: Callable[[Row], None]) -> None:
        self.add = take

    def offer(self, row: Row) -> bool:
        self.add(row)
        return True

    def require_ready(self) -> None:
        """Do nothing: this sink stores no rows and is always ready."""


class _PassThroughStage(Stage):
    """Stage that returns its rows unchanged, because their decisions were already made."""

    def __call__(self, row: Row) -> Row:
        return row


def to_json_values(result: object) -> Any:
    """Return the result of a step as values of JSON types."""
    kind: Any = type(result)
    return _build_type_adapter(kind).dump_python(result, mode="json")


@cache
def _build_type_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def format_canonical_json(value: object) -> str:
    """Return `value` as canonical JSON: equal values give equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _build_step_row(step: VersionedCurationStep[Any], request: CurationStepRequest) -> Row:
    return {
        "key": step.key(request),
        "name": request.name,
        "location": request.location,
        "clip": request.clip,
        "_given": format_canonical_json(request.given),
    }
