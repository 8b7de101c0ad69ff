"""State of a case: the result of the events in its log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from unreel.core.names import read_clip_id
from unreel.report.review.result import Attention

CaseStage = Literal["waiting", "working", "shown", "done", "failed"]
"""`shown`: the evidence page exists, and the annotated copy does not."""
VERDICTS: Final = {"generated": "AI-generated", "real": "real", "not-known": "not known"}
"""Verdicts that a person may give, with their texts."""
ENDED: Final = frozenset({"done", "failed"})


@dataclass(frozen=True, slots=True)
class PersonEntry:
    """A note by a person, with a verdict or without."""

    person: str
    at: datetime
    text: str
    verdict: str = ""


@dataclass(slots=True, kw_only=True)
class CaseRecord:
    """One clip with all that is known about it; the fields after `batch` follow the log."""

    id: str
    folder: Path
    name: str
    """File name as the person gave it: untrusted text."""
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
    entries: list[PersonEntry] = field(default_factory=list)
    """Notes and verdicts, oldest first."""
    asks_again: bool = False
    """Whether failed questions are asked again."""
    is_deleted: bool = False

    @property
    def original(self) -> Path:
        """Return the path of the original file."""
        return self.folder / "original" / self.name

    @property
    def decision(self) -> PersonEntry | None:
        """Return the last entry with a verdict."""
        return next((entry for entry in reversed(self.entries) if entry.verdict), None)

    @property
    def people(self) -> set[str]:
        """Return the person who added the case, and those who wrote about it."""
        return {self.person, *(entry.person for entry in self.entries)}

    def apply(self, event: Mapping[str, Any]) -> None:
        """Change the state by one event of the log; unknown events change nothing."""
        match event["event"]:
            case "started":
                self.stage = "working"
            case "evidence":
                known = event["attention"] in get_args(Attention)
                self.attention = cast("Attention", event["attention"]) if known else "failure"
                self.stage, self.sentence = "shown", str(event["sentence"])
                self.claims = tuple(event["claims"])
            case "finished":
                self.stage, self.asks_again = "done", False
            case "failed":
                self.stage, self.attention, self.asks_again = "failed", "failure", False
                self.sentence = str(event["sentence"])
            case "entry":
                verdict = event["verdict"] if event["verdict"] in VERDICTS else ""
                at = read_time(event["at"])
                self.entries.append(PersonEntry(event["person"], at, event["text"], verdict))
            case "again":
                self.stage, self.asks_again = "waiting", True
            case "deleted":
                self.is_deleted = True
            case _:
                pass


def read_record(folder: Path, event: Mapping[str, Any]) -> CaseRecord:
    """Return the record of a case from the first event of its log."""
    return CaseRecord(
        id=folder.name,
        folder=folder,
        clip=read_clip_id(event["clip"], str(folder)),
        added_at=read_time(event["at"]),
        **{name: event[name] for name in ("name", "size_bytes", "reviewers", "person", "batch")},
    )


def read_time(text: str) -> datetime:
    """Return the time in an event."""
    return datetime.fromisoformat(text).astimezone(UTC)
