"""The audit of a set on its way to be frozen: observed clip by clip, judged as a whole."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.core.clip import Generated
from unreel.core.estimate import Estimate
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.curate.audit.audit import Audit, Finding, ViewAudit, audit
from unreel.curate.audit.card import chance, format_auc, notes
from unreel.curate.audit.frame import frame_features
from unreel.curate.audit.observation import Observation
from unreel.curate.audit.section import AuditSection
from unreel.curate.piece import Piece
from unreel.curate.pieces import Walk
from unreel.curate.state import AuditSummary, State, Work
from unreel.curate.step import Given, StepName, Subject, as_plain, to_json
from unreel.curate.watermark.clip import watermarks_of
from unreel.curate.watermark.mark import Watermarks
from unreel.curate.watermark.take import WATERMARK, read_texts
from unreel.media.reader import MediaReader

AUDIT: Final = "audit"
_DIGITS: Final = 6
"""Features are kept to so many: the last ones depend on how many threads added numbers up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Result of inspecting a clip whose marks are known from an earlier step."""

    frame: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWithMarks(Seen):
    """Result of inspecting any other clip."""

    marks: Watermarks


_MARKS: Final = TypeAdapter(Watermarks)
_SEEN: Final[TypeAdapter[Seen]] = TypeAdapter(SeenWithMarks | Seen)
_SUMMARY: Final = TypeAdapter(AuditSummary)


def take(section: AuditSection, work: Work, state: State) -> State:
    """Test whether the labels of the segments can be predicted without watching.

    Marks that an earlier step found are believed; other clips are looked at now.
    """
    state.require_pieces(AUDIT)
    pieces, seed, bench = state.pieces, work.recipe.seed, work.bench
    step = StepName(name=AUDIT, version=1, settings={"texts": section.texts}, finds=_SEEN)
    subjects = Walk(lambda: map(_subject, pieces))
    look = partial(_look, texts=section.texts)
    bench.ask(step, subjects, look)

    def observed() -> Iterator[tuple[Piece, Observation]]:
        seen = bench.recall(step, subjects)
        for piece, found in zip(pieces, seen, strict=True):
            yield piece, _observation(piece, found)

    whole = StepName(name=f"{AUDIT}-verdict", version=3, settings={"seed": seed}, finds=_SUMMARY)
    members = Walk(lambda: (piece.subject(observed=_mark(seen)) for piece, seen in observed()))
    summary = bench.conclude(
        whole, members, lambda: _summary(audit((seen for _, seen in observed()), seed=seed))
    )
    return replace(state, audit=summary)


def _subject(piece: Piece) -> Subject:
    return piece.subject(marked=WATERMARK in piece.notes)


def _summary(judged: Audit) -> AuditSummary:
    return AuditSummary(
        text=_text(judged),
        document=_rounded(as_plain(judged)),
        leaks=judged.finding is Finding.LEAKS,
    )


def _mark(observation: Observation) -> str:
    return digest(to_json(as_plain(observation)))


def _look(reader: MediaReader, file: Path, given: Given, *, texts: bool) -> Seen | Failure:
    middle = reader.frames(file, sampling="uniform-1", encoding="rgb24")
    if isinstance(middle, Failure):
        return middle
    frame = _rounded(dict(frame_features(middle.frames[0].rgb())))
    if given["marked"]:
        return Seen(frame=frame)
    marks = watermarks_of(file, reader=reader, read_text=read_texts() if texts else None)
    return marks if isinstance(marks, Failure) else SeenWithMarks(frame=frame, marks=marks)


def _observation(piece: Piece, found: Seen | Failure) -> Observation:
    origin = piece.entry.origin
    return Observation(
        clip=piece.entry.name,
        creator=origin.creator if isinstance(origin, Generated) else None,
        group=piece.entry.group or piece.family or piece.source,
        facts=piece.clip.facts,
        frame=found if isinstance(found, Failure) else found.frame,
        watermarks=found if isinstance(found, Failure) else _marks(piece, found),
    )


def _marks(piece: Piece, found: Seen) -> Watermarks:
    if isinstance(found, SeenWithMarks):
        return found.marks
    return _MARKS.validate_python(piece.notes[WATERMARK])


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.{_DIGITS}g}")
        case dict():
            return {key: _rounded(item) for key, item in value.items()}
        case list():
            return [_rounded(item) for item in value]
        case _:
            return value


def _text(judged: Audit) -> str:
    """The audit for the card."""
    rows = "\n".join(map(_row, judged.views))
    remarks = " ".join(notes(judged))
    return (
        f"{_WORDS[judged.finding]}\n\n| a model that sees only | finds | AUC, seen creators [95 % interval] | unseen creators | p | what tells most |\n"
        f"| --- | --- | --- | --- | --- | --- |\n{rows}\n\n{remarks} A frame is part of looking, so it warns and does not decide. "
        "`audit.json` holds the details."
    )


_WORDS: Final = {
    Finding.LEAKS: "**The labels leak**: a score on this benchmark may be read off the files.",
    Finding.CLEAN: "No leak was found.",
    Finding.INCONCLUSIVE: "No leak was proven, and the intervals do not exclude one. Add scenes, or clips of both labels.",
}


def _row(view: ViewAudit) -> str:
    cells = " | ".join(
        format_auc(auc) if isinstance(auc, Estimate) else "—" for auc in (view.auc, view.transfer)
    )
    tells = ", ".join(leak.feature for leak in view.leaks[:3]) or "—"
    return (
        f"| {view.view.value} | {view.finding.value} | {cells} | {chance(view.p_value)} | {tells} |"
    )
