"""Cases on disk: one folder per case with the original, the results and an append-only log.

The state of a case is the result of the events in its log.
"""

import hashlib
import json
import os
import re
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, Final, Literal

from pydantic import BeforeValidator

from unreel.core.chunks import READ_BYTES
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.input_files import parse_json_object
from unreel.core.output_files import PART, OutputDirectory
from unreel.core.safe_names import read_clip_id
from unreel.core.safe_text import sanitise_line
from unreel.engine.location import StorageLocation
from unreel.engine.writer_lock import build_writer_lock
from unreel.report.review.index_page import ATTENTION_TITLES
from unreel.report.review.review_result import Attention

CaseStage = Literal["waiting", "working", "shown", "done", "failed"]
"""Stage of a case; in `shown` the evidence page exists, but not yet the annotated copy."""
ENDED: Final = frozenset({"done", "failed"})
VERDICTS: Final = {"generated": "AI-generated", "real": "real", "not-known": "not known"}
"""Verdicts that a person may give, with their texts."""
LOG: Final = "log.jsonl"
_STAGES: Final[dict[str, CaseStage]] = {
    "started": "working",
    "evidence": "shown",
    "finished": "done",
    "failed": "failed",
    "again": "waiting",
}
"""Stage of a case after each event; other events do not change it."""
_CASES: Final = "cases"
_ID: Final = re.compile(r"[0-9a-f]{16}")
_MAX_NAME, _MAX_SUFFIX = 200, 20


@dataclass(frozen=True, slots=True)
class CaseNote:
    """A note by a person, with a verdict or without."""

    person: str
    at: datetime
    text: str
    verdict: str


@dataclass(slots=True, kw_only=True)
class CaseRecord:
    """Clip with the results of its review; the fields after `batch` result from the log."""

    id: str
    folder: Path
    name: str
    """File name as uploaded, which is untrusted text."""
    clip: str
    """SHA-256 of the original."""
    size_bytes: int
    reviewers: str
    """Name of the reviewer set."""
    person: str
    added_at: datetime
    batch: str
    stage: CaseStage = "waiting"
    attention: Attention | None = None
    sentence: str = ""
    claims: tuple[str, ...] = ()
    keyframes: tuple[dict[str, Any], ...] = ()
    """Rows that `write_keyframes` returned."""
    entries: list[CaseNote] = field(default_factory=list)
    """Notes and verdicts, oldest first."""
    is_deleted: bool = False

    @property
    def original(self) -> Path:
        """Return the path of the original file."""
        return self.folder / "original" / self.name

    @property
    def is_ended(self) -> bool:
        """Return whether the review of the case has ended."""
        return self.stage in ENDED

    @property
    def decision(self) -> CaseNote | None:
        """Return the last entry with a verdict."""
        return next((entry for entry in reversed(self.entries) if entry.verdict), None)

    @property
    def people(self) -> set[str]:
        """Return the person who added the case, and those who wrote about it."""
        return {self.person, *(entry.person for entry in self.entries)}

    def apply(self, event: Mapping[str, Any]) -> None:
        """Change the state by one event of the log; unknown events change nothing."""
        name = event["event"]
        self.stage = _STAGES.get(name, self.stage)
        if name in {"evidence", "failed"}:
            self.attention, self.sentence = event["attention"], event["sentence"]
            self.claims = tuple(event["claims"])
        if name == "keyframes":
            self.keyframes = tuple(event["rows"])
        if name == "entry":
            at = datetime.fromisoformat(event["at"])
            self.entries.append(CaseNote(event["person"], at, event["text"], event["verdict"]))
        self.is_deleted |= name == "deleted"


_Day = Annotated[date | None, BeforeValidator(lambda text: text or None)]
"""Date of a form field, which may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFilter:
    """Search filter of the list of cases; an empty field matches every case."""

    text: str = ""
    """Part of the name, or the beginning of the SHA-256."""
    since: _Day = None
    until: _Day = None
    verdict: str = ""
    """Verdict of a person; `none` for cases without one."""
    person: str = ""
    batch: str = ""

    def matches(self, case: CaseRecord) -> bool:
        """Return whether `case` matches every field of the filter."""
        text, day = self.text.strip().casefold(), case.added_at.date()
        return (
            (text in case.name.casefold() or case.clip.startswith(text))
            and (self.since or day) <= day <= (self.until or day)
            and self.verdict in {"", case.decision.verdict if case.decision else "none"}
            and self.person in {"", *case.people}
            and self.batch in {"", case.batch}
        )


class CaseStore:
    """All cases below a folder. One process at a time opens it; methods may be called from threads.

    Args:
        root: Folder of the desk; it is created if missing.
    """

    def __init__(self, root: Path) -> None:
        self.root = OutputDirectory(root)
        self.root.make(_CASES)
        self._lock = threading.RLock()
        self._writer_lock = ExitStack()
        self._writer_lock.enter_context(build_writer_lock(StorageLocation(str(root)) / "desk"))
        self._cases: dict[str, CaseRecord] = {}
        for folder in sorted((root / _CASES).iterdir()):
            if not _ID.fullmatch(folder.name) and not folder.name.startswith(PART):
                continue
            case = self._read(folder)
            if case is None or case.is_deleted:
                self.root.remove_folder(f"{_CASES}/{folder.name}")
            else:
                self._cases[case.id] = case

    def add(
        self, name: str, file: IO[bytes], *, reviewers: str, person: str, batch: str
    ) -> CaseRecord:
        """Store the clip in `file` as a new case, and return its record."""
        case_id, name = secrets.token_hex(8), sanitise_upload_name(name)
        digest, size = hashlib.sha256(), 0
        with self.root.create(f"{_CASES}/{case_id}/original/{name}") as into:
            while chunk := file.read(READ_BYTES):
                digest.update(chunk)
                size += len(chunk)
                into.write(chunk)
        fields = {"name": name, "clip": digest.hexdigest(), "size_bytes": size, "batch": batch}
        event = _build_log_event("added", person, **fields, reviewers=reviewers)
        self._append(case_id, event)
        case = _make_record(self.root.root / _CASES / case_id, event)
        with self._lock:
            self._cases[case_id] = case
        return case

    def find(self, case_id: str) -> CaseRecord | None:
        """Return the case with the id `case_id`; `None` if there is no such case."""
        case = self._cases.get(case_id)
        return None if case is None or case.is_deleted else case

    def select(self, case_filter: CaseFilter = CaseFilter()) -> list[CaseRecord]:  # noqa: B008  frozen
        """Return the cases that match the filter, newest first."""
        with self._lock:
            cases = [case for case in self._cases.values() if not case.is_deleted]
        return _sort_newest_first(filter(case_filter.matches, cases))

    def record(self, case: CaseRecord, event: str, person: str = "", **fields: Any) -> None:
        """Append an event to the log of a case, and update its state."""
        entry = _build_log_event(event, person, **fields)
        with self._lock:
            self._append(case.id, entry)
            case.apply(entry)

    def remove(self, case: CaseRecord) -> None:
        """Delete the folder of a case with all its files."""
        self.root.remove_folder(f"{_CASES}/{case.id}")
        with self._lock:
            self._cases.pop(case.id, None)

    def close(self) -> None:
        """Release the lock, so that another process can open the folder; a second call does nothing."""
        self._writer_lock.close()

    def _append(self, case_id: str, event: dict[str, Any]) -> None:
        line = json.dumps(event, allow_nan=False) + "\n"
        with self.root.append(f"{_CASES}/{case_id}/{LOG}") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())

    def _read(self, folder: Path) -> CaseRecord | None:
        """Read a case from its folder; `None` if its upload or its deletion was interrupted."""
        events = list(self._iter_events(folder.name))
        if not events:
            return None
        if events[0]["event"] != "added":
            problem = "the beginning of its log is missing"
            raise UnreadableSourceError(str(folder), problem, "Move the folder away and inspect it")
        case = _make_record(folder, events[0])
        for event in events[1:]:
            case.apply(event)
        return case

    def _iter_events(self, case_id: str) -> Iterator[dict[str, Any]]:
        """Yield a case's events without damaged lines; end a line that was cut off, for the next event."""
        name = f"{_CASES}/{case_id}/{LOG}"
        if self.root.size(name) is None:
            return
        with self.root.read(name) as file:
            data = file.read()
        if not data.endswith(b"\n"):
            with self.root.append(name) as file:
                file.write(b"\n")
        for line in data.splitlines():
            try:
                event = dict(parse_json_object(line))
            except InvalidValueError:
                continue
            if {"event", "at", "person"} <= event.keys():
                yield event


def group_cases_for_triage(cases: Iterable[CaseRecord]) -> list[tuple[str, list[CaseRecord]]]:
    """Return the cases in titled groups: cases under review first, then as on a review's index page.

    Cases under review are in the order of the queue. In other groups, cases without a verdict of a
    person come first, and newer ones before older ones.
    """
    newest = _sort_newest_first(cases)
    groups = [("In progress", [case for case in newest if case.attention is None][::-1])]
    for attention, title in ATTENTION_TITLES.items():
        group = [case for case in newest if case.attention == attention]
        groups.append((title, sorted(group, key=lambda case: case.decision is not None)))
    return [(title, group) for title, group in groups if group]


def _sort_newest_first(cases: Iterable[CaseRecord]) -> list[CaseRecord]:
    return sorted(cases, key=lambda case: case.added_at, reverse=True)


def sanitise_upload_name(name: str) -> str:
    """Return a file name without folders, control characters and leading dots, of bounded length."""
    last = sanitise_line(PurePosixPath(name.replace("\\", "/")).name).lstrip(". ")
    stem, suffix = PurePosixPath(last).stem, PurePosixPath(last).suffix
    suffix = suffix.encode()[:_MAX_SUFFIX].decode(errors="ignore")
    stem = stem.encode()[: _MAX_NAME - len(suffix.encode())].decode(errors="ignore")
    return f"{stem}{suffix}" or "unnamed"


def _build_log_event(event: str, person: str, **fields: Any) -> dict[str, Any]:
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"at": at, "event": event, "person": person, **fields}


def _make_record(folder: Path, event: Mapping[str, Any]) -> CaseRecord:
    """Return the record of a case from the first event of its log."""
    return CaseRecord(
        id=folder.name,
        folder=folder,
        clip=read_clip_id(event["clip"], str(folder)),
        added_at=datetime.fromisoformat(event["at"]),
        **{name: event[name] for name in ("name", "size_bytes", "reviewers", "person", "batch")},
    )
