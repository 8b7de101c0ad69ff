"""Where and when something was found, by whom: as the player and as the overlay draw it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.plain import plain, plain_lines
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.core.verdict import TraceVerdict
from unreel.evaluate.opinion import Opinion
from unreel.media.overlay import MovingMark

_LABEL: Final = 44
_SHORTEST_US: Final = MICROSECONDS // 10
_KNOWN: Final = "what is known"
_TRUTH_COLOUR: Final = 1
_ANSWER_COLOURS: Final = (0, 2, 3, 4, 5)
"""Of the overlay's palette: those that the page's player has for its answers, in the same order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault on a timeline. A missing start or end was not named by who found it."""

    start_us: int | None
    end_us: int | None
    track: tuple[BoxAt, ...]
    label: str
    text: str

    def spec(self) -> dict[str, Any]:
        """The trace as `player.js` takes it."""
        return {
            "start_us": self.start_us,
            "end_us": self.end_us,
            "boxes": [{"at_us": mark.at_us, **asdict(mark.box)} for mark in self.track],
            "label": self.label,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingTrack:
    """All that one source found: a reviewer, or those who know."""

    name: str
    kind: Literal["truth", "answer"]
    findings: tuple[Finding, ...]

    def spec(self) -> dict[str, Any]:
        """The track as `player.js` takes it."""
        traces = [finding.spec() for finding in self.findings]
        return {"name": self.name, "kind": self.kind, "traces": traces}


def find_tracks(
    opinions: Iterable[Opinion], truth: tuple[Trace, ...], *, duration_us: int
) -> list[FindingTrack]:
    """A track for what is known, if anything is, and one for each reviewer asked for traces."""
    known = FindingTrack(name=_KNOWN, kind="truth", findings=tuple(map(_known, truth)))
    said = [
        FindingTrack(
            name=plain(opinion.reviewer),
            kind="answer",
            findings=tuple(_said(opinion, duration_us=duration_us)),
        )
        for opinion in opinions
        if opinion.question.instrument.protocol == "trace"
    ]
    return [known, *said] if truth else said


def moving_marks(tracks: Iterable[FindingTrack], *, duration_us: int) -> Iterator[MovingMark]:
    """The same as marks of the overlay, in the player's colours."""
    n_answers = 0
    for track in tracks:
        colour = _TRUTH_COLOUR
        if track.kind == "answer":
            colour = _ANSWER_COLOURS[n_answers % len(_ANSWER_COLOURS)]
            n_answers += 1
        for finding in track.findings:
            start_us = finding.start_us or 0
            end_us = finding.end_us or max(duration_us, start_us + _SHORTEST_US)
            yield MovingMark(
                span=TimeSpan(start_us, end_us),
                track=finding.track,
                caption=f"{track.name}: {finding.label}",
                colour=colour,
            )


def _said(opinion: Opinion, *, duration_us: int) -> Iterator[Finding]:
    verdict = opinion.verdict
    if not isinstance(verdict, TraceVerdict) or verdict.label is not Label.GENERATED:
        return
    text = plain_lines(verdict.explanation) if isinstance(verdict.explanation, str) else ""
    start_us = None
    if isinstance(verdict.start_us, int):
        # A time past the end is told in words; on the timeline it stands at the end.
        start_us = min(verdict.start_us, max(0, duration_us - _SHORTEST_US))
    box = verdict.box
    yield Finding(
        start_us=start_us,
        end_us=None,
        track=(BoxAt(start_us or 0, box),) if isinstance(box, Box) else (),
        label=_shorten(text) or "generated",
        text=text,
    )


def _known(trace: Trace) -> Finding:
    kinds = ", ".join(sorted(kind.value.replace("-", " ") for kind in trace.categories))
    return Finding(
        start_us=trace.span.start_us,
        end_us=trace.span.end_us,
        track=trace.track,
        label=kinds or "a fault",
        text=plain_lines(trace.explanation),
    )


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else line[: _LABEL - 1].rstrip() + "\u2026"
