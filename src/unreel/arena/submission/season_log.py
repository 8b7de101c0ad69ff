"""Log of a season: the history of every entry, as an append-only file with a chain of hashes.

Each line contains the hash of the previous line, so an edited, moved or removed line is
detected. To detect a truncated or completely rewritten file, compare with a stored last hash:
`unreel arena log` prints the last hash, and the site shows it.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal

from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory

LOG: Final = "log.jsonl"
BEGINNING: Final = "0" * 64
"""Value of `before` in the first line."""
_LARGEST_BYTES: Final = 256 << 20
_LONGEST_LINE: Final = 1 << 20
Kind = Literal["creator", "reviewer", "season"]


class EntryState(StrEnum):
    """State of an entry in the log. The values are stored: add new ones, never rename one."""

    SUBMITTED = "submitted"
    CHECKED = "checked"
    REFUSED = "refused"
    ACCEPTED = "accepted"
    PLAYED = "played"
    WITHDRAWN = "withdrawn"
    """Withdrawn by its team. Its results stay on the boards."""
    RETIRED = "retired"
    """Removed by the organiser. Its results stay on the boards."""
    NOTED = "noted"
    """Note about the season itself, not about an entry, such as the hash of the holdout secret."""


_AGAIN: Final = frozenset({EntryState.SUBMITTED})
_LEAVING: Final = frozenset({EntryState.WITHDRAWN, EntryState.RETIRED})
_NEXT: Final[Mapping[EntryState | None, frozenset[EntryState]]] = {
    None: _AGAIN,
    EntryState.SUBMITTED: frozenset({EntryState.CHECKED, EntryState.REFUSED}) | _LEAVING | _AGAIN,
    EntryState.CHECKED: frozenset({EntryState.ACCEPTED, EntryState.REFUSED}) | _LEAVING | _AGAIN,
    EntryState.REFUSED: _AGAIN,
    EntryState.ACCEPTED: frozenset({EntryState.PLAYED}) | _LEAVING,
    EntryState.PLAYED: _LEAVING,
    EntryState.WITHDRAWN: _AGAIN,
    EntryState.RETIRED: _AGAIN,
}
"""Allowed next states. A submission that a kill interrupted may be repeated; an accepted one must leave first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonLogEvent:
    """One event in the log of a season: a new state of an entry, or a note about the season."""

    entry: str
    """Title of the entry, which is also that of its row on a board."""
    state: EntryState
    at_us: int
    """Time in microseconds since 1970, UTC."""
    kind: Kind
    team: str = ""
    attempt: int = 0
    """Number of the attempt among those of the same team and kind, from 1."""
    identity: str = ""
    """Hash of everything that determines the entry's clips or answers, including the seed."""
    seed: int | None = None
    declared: bool = False
    """Whether the team declared this attempt as the ranked one, see `SeasonEntryRecipe.declared`."""
    reasons: tuple[str, ...] = ()

    @property
    def when(self) -> datetime | None:
        """Return the time of the event as a date; `None` if the date is out of range."""
        try:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.at_us)
        except OverflowError:
            return None


@dataclass(frozen=True, slots=True)
class SeasonLogLine:
    """One line of the log: an event, the hash of the previous line, and its own hash."""

    event: SeasonLogEvent
    before: str
    own: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonLog:
    """Parsed log of a season: its lines, and the lines that are incomplete or were changed."""

    lines: tuple[SeasonLogLine, ...] = ()
    torn: tuple[int, ...] = ()
    """Numbers, from 1, of lines that cannot be parsed, usually cut by a crash; their events did not happen."""
    broken: tuple[str, ...] = ()
    """Problems with edited, moved or removed lines; empty if the log is intact."""

    @property
    def events(self) -> tuple[SeasonLogEvent, ...]:
        """Return the events in the log of a season, oldest first."""
        return tuple(line.event for line in self.lines)

    @property
    def head(self) -> str:
        """Return the hash of the log's last line; store it elsewhere to detect later removed lines."""
        return self.lines[-1].own if self.lines else BEGINNING

    def state(self, entry: str) -> EntryState | None:
        """Return the current state of the entry; `None` if the log does not contain it."""
        return next((e.state for e in reversed(self.events) if e.entry == entry), None)

    def require_whole(self, head: str | None = None) -> None:
        """Check that the log was not changed, and that it contains the hash `head` if one is given.

        Raises:
            UnreadableSourceError: A line was edited, moved or removed, or no line has that hash.
        """
        problems = [*self.broken]
        if head is not None and head not in {BEGINNING, *(line.own for line in self.lines)}:
            problems.append(f"no line has the hash {head}: lines were removed or rewritten")
        if problems:
            remedy = "Put the log back from a copy that has the published hash"
            raise UnreadableSourceError(LOG, problems[0], remedy)


def read_season_log(folder: Path) -> SeasonLog:
    """Return the log of the season at `folder`; an empty one if it is missing."""
    try:
        with OutputDirectory(folder).read(LOG) as file:
            return _parse_log(_read_whole_file(file.fileno()))
    except FileNotFoundError:
        return SeasonLog()


def append_log_event(folder: Path, event: SeasonLogEvent) -> SeasonLogLine:
    """Append `event` to the log of the season at `folder`; it is on disk when this returns.

    Concurrent writers on one machine wait for each other.

    Raises:
        InvalidValueError: The entry's state does not allow the event, or the line exceeds 1 MiB.
        UnreadableSourceError: The log was changed after it was written.
    """
    (line,) = append_log_events(folder, lambda _: [event])
    return line


def append_log_events(
    folder: Path, decide: Callable[[SeasonLog], Iterable[SeasonLogEvent]]
) -> list[SeasonLogLine]:
    """Append the events that `decide` returns for the current log, under a lock; return the new lines."""
    descriptor = OutputDirectory(folder).open(LOG, os.O_RDWR | os.O_APPEND)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        data = _read_whole_file(descriptor)
        history = _parse_log(data)
        history.require_whole()
        chained = list(_iter_hash_chain_lines(history, decide(history)))
        text = b"".join(map(_encode_log_line, chained))
        # A line that a crash cut is terminated, not removed: the file is append-only.
        text = b"\n" + text if text and data and not data.endswith(b"\n") else text
        while text:
            text = text[os.write(descriptor, text) :]
        os.fsync(descriptor)
        return chained
    finally:
        os.close(descriptor)


def _iter_hash_chain_lines(
    history: SeasonLog, events: Iterable[SeasonLogEvent]
) -> Iterator[SeasonLogLine]:
    before = history.head
    states = {event.entry: event.state for event in history.events}
    # The name of an entry that took part is not used again: its rows on boards must stay unique.
    played = {event.entry for event in history.events if event.state is EntryState.PLAYED}
    for event in events:
        if event.state is not EntryState.NOTED:
            was = states.get(event.entry)
            is_replay = event.state is EntryState.SUBMITTED and event.entry in played
            if event.state not in _NEXT[was] or is_replay:
                raise InvalidValueError(_format_transition_error(event, was))
            states[event.entry] = event.state
        line = SeasonLogLine(event, before, _compute_event_hash(asdict(event), before))
        before = line.own
        yield line


def _format_transition_error(event: SeasonLogEvent, was: EntryState | None) -> str:
    state = "was never submitted" if was is None else f"is {was.value}"
    if event.state is EntryState.SUBMITTED:
        return f"{event.entry!r} {state} and cannot be submitted again. Enter under another name"
    return f"{event.entry!r} {state} and cannot become {event.state.value}. See `unreel arena log`"


def _compute_event_hash(event: Mapping[str, Any], before: str) -> str:
    return hashlib.sha256(f"{before}\n{_format_canonical_json(event)}".encode()).hexdigest()


def _format_canonical_json(event: Mapping[str, Any]) -> str:
    return json.dumps(event, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _format_log_line(line: SeasonLogLine) -> str:
    return _format_line_json(line, asdict(line.event)) + "\n"


def _format_line_json(line: SeasonLogLine, event: Mapping[str, Any]) -> str:
    return (
        f'{{"before":"{line.before}","event":{_format_canonical_json(event)},"hash":"{line.own}"}}'
    )


def _encode_log_line(line: SeasonLogLine) -> bytes:
    """Return the bytes of a log line; raise `InvalidValueError` if it is longer than 1 MiB."""
    data = _format_log_line(line).encode()
    if len(data) > _LONGEST_LINE:
        msg = (
            f"the event of {line.event.entry[:80]!r} has {len(data)} bytes, and a line of the log "
            f"{_LONGEST_LINE} at most. Shorten its reasons"
        )
        raise InvalidValueError(msg)
    return data


def _read_whole_file(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    if size > _LARGEST_BYTES:
        problem = f"no log of a season: it has {size} bytes"
        raise UnreadableSourceError(LOG, problem, "Take it away, or put the right file there")
    return os.pread(descriptor, size, 0)


def _parse_log(data: bytes) -> SeasonLog:
    lines: list[SeasonLogLine] = []
    torn, broken = [], []
    *ended, last = data.split(b"\n")
    before = BEGINNING
    for number, raw in enumerate([*ended, *([last] if last else [])], start=1):
        line = _parse_log_line(raw)
        if line is None:
            torn.append(number)
            continue
        if raw != _format_line_json(line, json.loads(raw)["event"]).encode():
            broken.append(f"line {number} has an unknown or a duplicate field")
        if line.before != before:
            broken.append(f"a line before line {number} was edited, moved or removed")
        if line.own != _compute_event_hash(json.loads(raw)["event"], line.before):
            broken.append(f"line {number} was edited")
        before = line.own
        lines.append(line)
    return SeasonLog(lines=tuple(lines), torn=tuple(torn), broken=tuple(broken))


def _parse_log_line(raw: bytes) -> SeasonLogLine | None:
    if len(raw) > _LONGEST_LINE:
        return None
    try:
        document = json.loads(raw)
        return SeasonLogLine(
            _parse_log_event(document["event"]), str(document["before"]), str(document["hash"])
        )
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _parse_log_event(values: Mapping[str, Any]) -> SeasonLogEvent:
    """Build an event from any release's line without unknown fields, which its hash still covers."""
    known = {
        field.name: values[field.name] for field in fields(SeasonLogEvent) if field.name in values
    }
    known |= {"state": EntryState(values["state"]), "reasons": tuple(values.get("reasons", ()))}
    return SeasonLogEvent(**known)
