"""A step of a curation: what it is asked, under which key, and what it found, in a table of its own.

A key follows from the step, its version, its settings and what it is asked about, so a changed setting
redoes that step and those that depend on its findings, and nothing else.
"""

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from unreel.core.clip import ClipId
from unreel.core.document import parse_object
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.failure import Failure, FailureReason, damaged_row, stored_failure
from unreel.core.identity import digest
from unreel.core.writing import Folder
from unreel.curate.findings import FINDINGS
from unreel.engine.access import Access, find_change, local_copy
from unreel.engine.committer import CommitPace
from unreel.engine.media_stage import MediaStage
from unreel.engine.place import Place
from unreel.engine.progress import Progress
from unreel.engine.run import run as run_stages
from unreel.engine.runner import Runner
from unreel.engine.stage import Row, Stage, failed
from unreel.engine.table import Table
from unreel.media.reader import MediaReader

Found = TypeVar("Found")
"""What a step finds out about one subject: a frozen value of its own."""
Given = Mapping[str, Any]
"""What decides an answer besides the clip, as JSON."""
Look = Callable[[MediaReader, Path, Given], Found | Failure]
"""Finds out about the clip in a file, given what else the question says; it must pickle."""

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
_LOOKED_UP: Final = 1_024
_NO_ROW: Final = Failure(FailureReason.UNSTATED, "the step has no row for it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a step is asked about: a file, and whatever else decides the answer."""

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
    """What it finds, as it is read back from its table."""
    settings: Given = field(default_factory=dict)

    def key(self, subject: Subject) -> str:
        """Identity of the question that this step asks about `subject`."""
        return digest(
            "curate",
            self.name,
            str(self.version),
            to_json(self.settings),
            subject.clip,
            to_json(subject.given),
        )

    def read(self, row: Row) -> Found | Failure:
        """What a row of the table keeps; one whose text is no JSON counts as failed.

        Raises:
            UnreadableSourceError: It says something that this step never finds.
        """
        if row["failure_reason"] is not None:
            return stored_failure(row["failure_reason"], row["failure_detail"])
        try:
            return self.finds.validate_python(parse_object((row["found"] or "").encode()))
        except InvalidValueError as error:
            return damaged_row(str(error))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = f"a finding that it never makes ({first['msg'].lower()})"
            remedy = "Something else wrote its table: name another folder, or make it again"
            source = f"steps/{self.name}"
            raise UnreadableSourceError(source, problem, remedy) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """Where a curation keeps its tables, and how its steps run."""

    place: Place
    access: Access
    ledgers: Path
    engine: str | Runner = "local"
    retry_failed: Collection[str] = TRANSIENT
    pace: CommitPace | None = None
    on_due: Callable[[str, int], None] = lambda _step, _rows: None
    """Told how many rows a step has to do, before it does them."""
    on_progress: Callable[[str, Progress], None] = lambda _step, _progress: None
    observe: Callable[[str, int], None] = lambda _event, _rows: None

    def table(self, step: str) -> Table:
        """The table of a step."""
        return Table(self.place / "steps" / f"{step}.lance", FINDINGS)

    @property
    def media(self) -> Place:
        """Where clips that this curation makes lie, named by their content."""
        return self.place / "media"

    def ask(
        self, step: StepName[Found], subjects: Sequence[Subject], look: Look[Found]
    ) -> list[Found | Failure]:
        """What `look` finds for each subject, in order; what the table holds is not asked again."""
        return self.ask_stage(step, subjects, ClipStage(look, self.access))

    def ask_stage(
        self, step: StepName[Found], subjects: Sequence[Subject], stage: Stage
    ) -> list[Found | Failure]:
        """The same by a stage that reads `_given` and writes `found`.

        What fails because of the hour is tried again at once, so that a busy machine does not decide
        which clips a benchmark has.
        """
        rows = [_row(step, subject) for subject in subjects]
        found: list[Found | Failure] = []
        for _ in range(_TRIES):
            self._run(step.name, rows, stage, engine=self.engine)
            found = self._read(step, rows)
            if not any(isinstance(own, Failure) and own.reason in TRANSIENT for own in found):
                break
        return found

    def settle(
        self,
        step: StepName[Found],
        subjects: Sequence[Subject],
        decide: Callable[[Sequence[Subject]], Sequence[Found]],
    ) -> list[Found]:
        """What `decide` says of a whole set, one finding for each subject, kept as rows.

        `decide` sees the subjects in the order of their keys, whatever order they come in here, and its
        findings hold for this very set: with another subject in it, it decides anew.
        """
        alone = {step.key(subject): subject for subject in subjects}
        ordered = sorted(alone)
        whole = replace(step, settings={"settings": step.settings, "set": digest(*ordered)})
        rows = [_row(whole, alone[key]) for key in ordered]
        kept = self._read(step, rows)
        decided = [found for found in kept if not isinstance(found, Failure)]
        if len(decided) < len(rows):
            decided = list(decide([alone[key] for key in ordered]))
            for row, found in zip(rows, decided, strict=True):
                row["found"] = to_json(as_plain(found))
            self._run(step.name, rows, _Kept(), engine="local")
        findings = dict(zip(ordered, decided, strict=True))
        return [findings[step.key(subject)] for subject in subjects]

    def _run(self, name: str, rows: Sequence[Row], stage: Stage, *, engine: str | Runner) -> None:
        table = self.table(name)
        held = _held(table, [row["key"] for row in rows])
        kept = {key for key, reason in held.items() if reason not in self.retry_failed}
        due = {row["key"] for row in rows} - kept
        if not due:
            return  # starting an engine to learn this costs seconds
        self.on_due(name, len(due))
        Folder(self.ledgers.parent).make(self.ledgers.name)
        run_stages(
            rows,
            [stage],
            table=table,
            engine=engine,
            pace=self.pace,
            retry_failed=self.retry_failed,
            ledger=self.ledgers / f"{name}.ledger",
            on_progress=lambda progress: self.on_progress(name, progress),
            observe=self.observe,
        )

    def _read(self, step: StepName[Found], rows: Sequence[Row]) -> list[Found | Failure]:
        keys = [row["key"] for row in rows]
        found = {row["key"]: step.read(row) for row in _rows(self.table(step.name), keys)}
        return [found.get(key, _NO_ROW) for key in keys]


class ClipStage(MediaStage):
    """Opens each clip through a media reader and writes down what was found."""

    def __init__(self, look: Look[Any], access: Access) -> None:
        super().__init__(access, in_flight=max(1, os.cpu_count() or 1))
        self._look = look

    def __call__(self, row: Row) -> Row:
        with local_copy(row["location"], self._access) as file:
            found = self._look(self._reader, file, json.loads(row["_given"]))
            changed = find_change(row["clip"], file) if row["clip"] else None
        if changed is not None:
            return failed(row, changed)
        if isinstance(found, Failure):
            return failed(row, found)
        kept = as_plain(found)
        return row | {"clip": kept.get("clip", row["clip"]), "found": to_json(kept)}


class _Kept(Stage):
    """Writes down what was decided already."""

    def __call__(self, row: Row) -> Row:
        return row


def as_plain(found: object) -> Any:
    """A finding of a step in the values that JSON has."""
    kind: Any = type(found)
    return _codec(kind).dump_python(found, mode="json")


@cache
def _codec(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def to_json(value: object) -> str:
    """`value` as JSON with one spelling."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _row(step: StepName[Any], subject: Subject) -> Row:
    return {
        "key": step.key(subject),
        "name": subject.name,
        "location": subject.location,
        "clip": subject.clip,
        "_given": to_json(subject.given),
    }


def _held(table: Table, keys: Sequence[str]) -> dict[str, str | None]:
    """The keys that have a row, with the reason of those that failed."""
    return {
        key: there.reason for chunk in _chunks(keys) for key, there in table.held(chunk).items()
    }


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _LOOKED_UP):
        yield keys[start : start + _LOOKED_UP]


def _rows(table: Table, keys: Sequence[str]) -> Iterator[Row]:
    for chunk in _chunks(keys):
        yield from table.get(chunk)
