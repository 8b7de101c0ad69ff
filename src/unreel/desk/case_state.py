"""State of a case: the result of the events in its log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, get_args

from unreel.core.names import read_clip_id
from unreel.report.review.headline import Attention

CaseStage = Literal["waiting", "working", "shown", "done", "failed"]
"""`shown`: the evidence page exists, and the annotated copy does not."""
PersonVerdict = Literal["generated", "real", "not-known"]
VERDICTS: Final[dict[PersonVerdict, str]] = {
    "generated": "AI-generated",
    "real": "real",
    "not-known": "not known",
}
ENDED: Final = frozenset({"done", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonEntry:
    """A note or a verdict by a person."""

    person: str
    at: datetime
    text: str
    verdict: PersonVerdict | None = None


@dataclass(slots=True, kw_only=True)
class CaseRecord:
    """One clip with all that is known about it; the fields after `folder` follow the log."""

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
    batch: str = ""
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
    def verdict(self) -> PersonEntry | None:
        """Return the last verdict by a person."""
        return next((entry for entry in reversed(self.entries) if entry.verdict), None)

    def apply(self, event: Mapping[str, Any]) -> None:
        """Change the state by one event of the log; unknown events change nothing."""
        match event["event"]:
            case "started":
                self.stage = "working"
            case "evidence":
                self.stage, self.attention = "shown", _read_attention(event["attention"])
                self.sentence, self.claims = str(event["sentence"]), tuple(event["claims"])
            case "finished":
                self.stage, self.asks_again = "done", False
            case "failed":
                self.stage, self.attention, self.asks_again = "failed", "failure", False
                self.sentence = str(event["sentence"])
            case "note" | "verdict":
                verdict = event.get("verdict")
                entry = PersonEntry(
                    person=str(event["person"]),
                    at=read_time(event["at"]),
                    text=str(event["text"]),
                    verdict=verdict if verdict in VERDICTS else None,
                )
                self.entries.append(entry)
            case "again":
                self.stage, self.asks_again = "waiting", True
            case "deleted":
                self.is_deleted = True


def read_record(folder: Path, event: Mapping[str, Any]) -> CaseRecord:
    """Return the record of a case from the first event of its log.

    Raises:
        KeyError: A field is missing.
        UnreadableSourceError: The hash of the clip is no hash.
    """
    return CaseRecord(
        id=folder.name,
        folder=folder,
        name=str(event["name"]),
        clip=read_clip_id(event["clip"], str(folder)),
        size_bytes=int(event["size_bytes"]),
        reviewers=str(event["reviewers"]),
        person=str(event["person"]),
        added_at=read_time(event["at"]),
        batch=str(event["batch"]),
    )


def read_time(text: object) -> datetime:
    """Return the time in an event."""
    return datetime.fromisoformat(str(text)).astimezone(UTC)


def _read_attention(text: object) -> Attention:
    found: dict[object, Attention] = {name: name for name in get_args(Attention)}
    return found.get(text, "failure")
