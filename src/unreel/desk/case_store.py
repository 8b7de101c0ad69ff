"""Cases on disk: one folder per case with the original, the results and an append-only log.

The state of a case is the result of the events in its log. Each line of the log carries the SHA-256 of
the line before it, and a file beside the log that of the last line. A case whose log, original or
evidence differs from these hashes is damaged: it is shown with the reason, and its files stay as they are.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any, Literal

from pydantic import BeforeValidator

from unreel.core.chunks import READ_BYTES
from unreel.core.errors import InvalidValueError, UnreelError, UnsafeTargetError
from unreel.core.input_files import parse_json_object
from unreel.core.output_files import PART, OutputDirectory
from unreel.core.safe_names import read_clip_id
from unreel.core.safe_text import sanitise_line
from unreel.engine.location import StorageLocation
from unreel.engine.writer_lock import build_writer_lock
from unreel.report.review.index_page import ATTENTION_TITLES
from unreel.report.review.review_result import Attention

CaseStage = Literal["waiting", "working", "shown", "done", "failed", "damaged"]
"""Stage of a case; in `shown` the evidence page exists, but not yet the annotated copy."""
ENDED = frozenset({"done", "failed", "damaged"})
VERDICTS = {"generated": "AI-generated", "real": "real", "not-known": "not known"}
"""Verdicts that a person may give, with their texts."""
LOG = "log.jsonl"
TRASH = "trash"
"""Folder of the cases that retention moved out of the list, each with a tombstone beside its folder."""
QUARANTINE = "quarantine"
"""Folder with a note for each damaged case; the files of the case stay in its own folder."""
_HEAD = "log.sha256"
"""File with the SHA-256 of the last line of the log."""
_BEFORE = "before"
"""Field of an event with the SHA-256 of the line before it, which is empty in the first line."""
_ANSWERS = "answers.lance"
_TRASHED_PART = 10
"""One case in this many may be moved to the trash at once."""
_STAGES: dict[str, CaseStage] = {
    "started": "working",
    "evidence": "shown",
    "finished": "done",
    "failed": "failed",
    "again": "waiting",
}
"""Stage of a case after each event; other events do not change it."""
_CASES = "cases"
_ID = re.compile(r"[0-9a-f]{16}")
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
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each file that the last complete review wrote."""
    n_not_chained: int = 0
    """Number of lines at the beginning of the log without the hash of the line before."""
    head: str = ""
    """SHA-256 of the last line of the log."""
    damage: str = ""
    """Reason why the case is damaged; empty for an intact case."""
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
        return {self.person, *(entry.person for entry in self.entries)} - {""}

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
        if name in {"started", "finished"}:
            self.files = dict(event.get("files", {}))
        self.is_deleted |= name == "deleted"

    def mark_damaged(self, reason: str) -> None:
        """Make this a damaged case, without the verdicts that its files contain."""
        self.damage, self.stage, self.attention = reason, "damaged", None
        self.sentence = f"Damaged: {reason}."
        self.claims, self.keyframes, self.entries = (), (), []


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
            is_case = _ID.fullmatch(folder.name) is not None
            case = self._read(folder) if is_case else None
            if case is not None and not case.is_deleted:
                self._cases[case.id] = case
            elif is_case or folder.name.startswith(PART):
                self.root.remove_folder(f"{_CASES}/{folder.name}")

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
        case = _make_record(self.root.root / _CASES / case_id, event)
        self._append(case, event)
        with self._lock:
            self._cases[case_id] = case
        return case

    def find(self, case_id: str) -> CaseRecord | None:
        """Return the case with the id `case_id`; `None` if unknown."""
        case = self._cases.get(case_id)
        return None if case is None or case.is_deleted else case

    def select(self, case_filter: CaseFilter = CaseFilter()) -> list[CaseRecord]:  # noqa: B008  frozen
        """Return the cases that match the filter, newest first."""
        with self._lock:
            cases = [case for case in self._cases.values() if not case.is_deleted]
        return _sort_newest_first(filter(case_filter.matches, cases))

    def record(self, case: CaseRecord, event: str, person: str = "", **fields: Any) -> None:
        """Append an event to the log of a case, and update its state.

        Nothing is written about a damaged case, or one in the trash.
        """
        entry = _build_log_event(event, person, **fields)
        with self._lock:
            if not case.damage and case.id in self._cases:
                self._append(case, entry)
                case.apply(entry)

    def remove(self, case: CaseRecord) -> None:
        """Delete the folder of a case with all its files."""
        self.root.remove_folder(f"{_CASES}/{case.id}")
        self.root.remove(f"{QUARANTINE}/{case.id}.json")
        with self._lock:
            self._cases.pop(case.id, None)

    def check(self, case: CaseRecord) -> bool:
        """Hash the log, the original and the evidence of a case again; return whether all are intact.

        A case that is not intact becomes a damaged case.
        """
        if not case.damage and case.id in self._cases:
            reason = self._find_damage(case)
            if reason and case.id in self._cases and not case.is_deleted:
                self._quarantine(case, reason)
        return not case.damage and case.id in self._cases

    def hash_review_files(self, case: CaseRecord) -> dict[str, str]:
        """Return the SHA-256 of each file that the review of a case wrote, by its path in the folder."""
        folder = OutputDirectory(case.folder)
        others = {"original", LOG, _HEAD, _ANSWERS}
        names = [name for name in folder.files() if name.partition("/")[0] not in others]
        return {name: self._hash_file(case, name) for name in names}

    def move_old_to_trash(self, retain_days: int) -> None:
        """Move ended cases older than `retain_days` to the trash: at most a tenth of all cases, or one."""
        cases, before = self.select(), datetime.now(UTC) - timedelta(days=retain_days)
        old = [case for case in reversed(cases) if case.added_at < before]
        old = [case for case in old if case.is_ended and not case.damage]
        for case in old[: max(1, len(cases) // _TRASHED_PART)]:
            if self.check(case):
                self._move_to_trash(case, f"older than {retain_days} days (retain_days)")

    def count_trash(self) -> int:
        """Return the number of cases in the trash."""
        trash = self.root.root / TRASH
        return sum(each.is_dir() for each in trash.iterdir()) if trash.is_dir() else 0

    def close(self) -> None:
        """Release the lock, so that another process can open the folder; a second call does nothing."""
        self._writer_lock.close()

    def _append(self, case: CaseRecord, event: dict[str, Any]) -> None:
        """Append a line to the log, or nothing if the disk does not take all of it."""
        line = json.dumps(event | {_BEFORE: case.head}, allow_nan=False).encode()
        with self.root.append(f"{_CASES}/{case.id}/{LOG}") as file:
            descriptor = file.fileno()
            n_bytes = os.fstat(descriptor).st_size
            try:
                if os.write(descriptor, line + b"\n") <= len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, n_bytes)
                raise
        case.head = hashlib.sha256(line).hexdigest()
        # The hash of an earlier line is accepted too, as after a kill at this point.
        with suppress(OSError):
            self.root.write(f"{_CASES}/{case.id}/{_HEAD}", case.head.encode())

    def _read(self, folder: Path) -> CaseRecord | None:
        """Read a case from its folder; `None` if its upload was interrupted and left no whole file."""
        try:
            names = self.root.files(f"{_CASES}/{folder.name}")
            if all(name.rpartition("/")[2].startswith(PART) for name in names):
                return None
            case = self._read_log(folder)
            note = f"{QUARANTINE}/{case.id}.json"
            if self.root.size(note) is not None:
                with self.root.read(note) as file:
                    case.mark_damaged(str(parse_json_object(file.read())["reason"]))
                    case.is_deleted = False
        except (UnreelError, OSError, ValueError, LookupError, TypeError) as error:
            case = _make_placeholder(folder)
            is_known = isinstance(error, InvalidValueError | UnsafeTargetError)
            self._quarantine(case, str(error) if is_known else "the log of the case cannot be read")
        return case

    def _read_log(self, folder: Path) -> CaseRecord:
        """Return the case of the log in `folder`, and remove the end of a line that was cut off by a kill.

        Raises:
            InvalidValueError: The log or the size of the original is not as it was written.
        """
        name = f"{_CASES}/{folder.name}"
        log = parse_case_log(self._read_bytes(f"{name}/{LOG}"))
        head = self._read_bytes(f"{name}/{_HEAD}").decode()
        n_chained = len(log.digests) - log.n_not_chained
        if head not in log.digests and (head or n_chained > 1):
            raise InvalidValueError("the end of the log of the case is missing or was changed")
        case = replay_case_log(log, folder)
        if (
            not case.is_deleted
            and self.root.size(f"{name}/original/{case.name}") != case.size_bytes
        ):
            raise InvalidValueError("the original file of the case is missing or was changed")
        if log.n_rest:
            with self.root.append(f"{name}/{LOG}") as file:
                os.ftruncate(file.fileno(), os.fstat(file.fileno()).st_size - log.n_rest)
        return case

    def _find_damage(self, case: CaseRecord) -> str:
        """Return why a case is damaged; empty for an intact case."""
        try:
            with self._lock:
                log = parse_case_log(self._read_bytes(f"{_CASES}/{case.id}/{LOG}"))
                if log.n_rest or log.digests[-1] != case.head:
                    return "the end of the log of the case is missing or was changed"
            if self._hash_file(case, f"original/{case.name}") != case.clip:
                return "the original file of the case was changed"
            for name, digest in [*case.files.items()]:
                # A review that starts now clears the hashes before it writes.
                if self._hash_file(case, name) != digest and case.files.get(name) == digest:
                    return f"{sanitise_line(name)} was changed"
        except FileNotFoundError:
            return "the original file or a file of the evidence is missing"
        except (InvalidValueError, UnsafeTargetError) as error:
            return str(error)
        return ""

    def _quarantine(self, case: CaseRecord, reason: str) -> None:
        """Mark a case as damaged, now and for the next start."""
        with self._lock:
            case.mark_damaged(reason)
        note = {"case": case.id, "name": case.name, "reason": reason, "at": _format_now()}
        with suppress(OSError, UnreelError):
            self.root.write(f"{QUARANTINE}/{case.id}.json", json.dumps(note, indent=2).encode())

    def _move_to_trash(self, case: CaseRecord, reason: str) -> None:
        note = {"case": case.id, "name": case.name, "sha256": case.clip, "reason": reason}
        note |= {"added_at": case.added_at.isoformat(), "moved_at": _format_now()}
        with self._lock:
            if case.is_ended and case.id in self._cases:
                tombstone = f"{TRASH}/{case.id}.json"
                self.root.write(tombstone, json.dumps(note, indent=2).encode())
                try:
                    self.root.move_entry(f"{_CASES}/{case.id}", f"{TRASH}/{case.id}")
                except OSError:
                    self.root.remove(tombstone)
                    raise
                del self._cases[case.id]

    def _read_bytes(self, name: str) -> bytes:
        """Return the content of a file; nothing if it is missing."""
        try:
            with self.root.read(name) as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def _hash_file(self, case: CaseRecord, name: str) -> str:
        with self.root.read(f"{_CASES}/{case.id}/{name}") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class CaseLog:
    """Events of a log, with the hashes of its lines."""

    events: tuple[dict[str, Any], ...]
    digests: tuple[str, ...]
    """SHA-256 of each complete line."""
    n_not_chained: int
    """Number of lines at the beginning without the hash of the line before, as in older cases."""
    n_rest: int
    """Number of bytes after the last complete line."""


def parse_case_log(data: bytes) -> CaseLog:
    """Parse the log of a case, and check that each line follows the line before.

    Raises:
        InvalidValueError: A line is missing, or was changed or added.
    """
    *lines, rest = data.split(b"\n")
    events: list[dict[str, Any]] = []
    digests = [""]
    n_not_chained = 0
    for number, line in enumerate(lines, start=1):
        try:
            event = dict(parse_json_object(line))
        except InvalidValueError:
            event = {}
        before = event.pop(_BEFORE, None)
        if before is None and n_not_chained == number - 1:
            n_not_chained = number
        elif before != digests[-1]:
            where = f"line {number - 1} or {number}" if number > 1 else "the first line"
            raise InvalidValueError(f"{where} of its log is missing or was changed")
        digests.append(hashlib.sha256(line).hexdigest())
        if {"event", "at", "person"} <= event.keys():
            events.append(event)
    if not events:
        raise InvalidValueError("the log of the case is missing, empty or unreadable")
    if events[0]["event"] != "added":
        raise InvalidValueError("the first line of the log of the case is missing or was changed")
    return CaseLog(tuple(events), tuple(digests[1:]), n_not_chained, len(rest))


def replay_case_log(log: CaseLog, folder: Path) -> CaseRecord:
    """Return the record of the case in `folder` that results from the events of its log."""
    case = _make_record(folder, log.events[0])
    for event in log.events[1:]:
        case.apply(event)
    case.head, case.n_not_chained = log.digests[-1], log.n_not_chained
    return case


def group_cases_for_triage(cases: Iterable[CaseRecord]) -> list[tuple[str, list[CaseRecord]]]:
    """Return the cases in titled groups: damaged, under review, then as on a review's index page.

    Cases under review are in the order of the queue. In other groups, cases without a verdict of a
    person come first, and newer ones before older ones.
    """
    newest = _sort_newest_first(cases)
    unfinished = [case for case in newest if case.attention is None and not case.damage]
    groups = [("Damaged", [case for case in newest if case.damage])]
    groups.append(("In progress", unfinished[::-1]))
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
    return {"at": _format_now(), "event": event, "person": person, **fields}


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _make_record(folder: Path, event: Mapping[str, Any]) -> CaseRecord:
    """Return the record of a case from the first event of its log."""
    return CaseRecord(
        id=folder.name,
        folder=folder,
        clip=read_clip_id(event["clip"], str(folder)),
        added_at=datetime.fromisoformat(event["at"]),
        **{name: event[name] for name in ("name", "size_bytes", "reviewers", "person", "batch")},
    )


def _make_placeholder(folder: Path) -> CaseRecord:
    """Return a record for a folder whose log cannot be used, with the name of its original if it has one."""
    try:
        status = folder.lstat()
        originals = [each for each in OutputDirectory(folder).files("original") if each[0] != "."]
    except (OSError, UnreelError):
        status, originals = folder.parent.lstat(), []
    return CaseRecord(
        id=folder.name,
        folder=folder,
        name=originals[0] if originals else "unknown file",
        clip="",
        size_bytes=0,
        reviewers="",
        person="",
        added_at=datetime.fromtimestamp(status.st_mtime, UTC),
        batch="",
    )
