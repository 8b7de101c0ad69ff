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
from unreel.curation.audit.audit import AuditFinding, AuditResult, ViewAudit, audit
from unreel.curation.audit.card import format_auc, format_p_value, iter_notes
from unreel.curation.audit.features import ClipObservation
from unreel.curation.audit.frame import frame_features
from unreel.curation.piece import ClipSegment
from unreel.curation.pieces import ReiterableStream
from unreel.curation.recipe import AuditSection
from unreel.curation.state import AuditSummary, CurationJob, CurationState
from unreel.curation.step import Given, StepName, StepSubject, as_plain, to_json
from unreel.curation.watermark.clip import find_clip_watermarks
from unreel.curation.watermark.mark import WatermarkSearch
from unreel.curation.watermark.step import WATERMARK, read_texts
from unreel.media.reader import MediaReader

AUDIT: Final = "audit"
_DIGITS: Final = 6
"""Stored digits of features: the last ones depend on the number of threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedFile:
    """Inspection result of a clip with watermarks known from an earlier step."""

    frame: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedFileWithMarks(InspectedFile):
    """Result of inspecting any other clip."""

    marks: WatermarkSearch


_MARKS: Final = TypeAdapter(WatermarkSearch)
_SEEN: Final[TypeAdapter[InspectedFile]] = TypeAdapter(InspectedFileWithMarks | InspectedFile)
_SUMMARY: Final = TypeAdapter(AuditSummary)


def run_step(section: AuditSection, work: CurationJob, state: CurationState) -> CurationState:
    """Test whether the labels of the segments can be predicted without watching.

    Marks that an earlier step found are believed; other clips are looked at now.
    """
    state.require_pieces(AUDIT)
    pieces, seed, bench = state.pieces, work.recipe.seed, work.bench
    step = StepName(name=AUDIT, version=1, settings={"texts": section.texts}, finds=_SEEN)
    subjects = ReiterableStream(lambda: map(_build_subject, pieces))
    look = partial(_inspect_file, texts=section.texts)
    bench.ask(step, subjects, look)

    def observed() -> Iterator[tuple[ClipSegment, ClipObservation]]:
        seen = bench.recall(step, subjects)
        for piece, found in zip(pieces, seen, strict=True):
            yield piece, _build_observation(piece, found)

    whole = StepName(name=f"{AUDIT}-verdict", version=3, settings={"seed": seed}, finds=_SUMMARY)
    members = ReiterableStream(
        lambda: (
            piece.subject(observed=_compute_observation_digest(seen)) for piece, seen in observed()
        )
    )
    summary = bench.conclude(
        whole, members, lambda: _build_summary(audit((seen for _, seen in observed()), seed=seed))
    )
    return replace(state, audit=summary)


def _build_subject(piece: ClipSegment) -> StepSubject:
    return piece.subject(marked=WATERMARK in piece.notes)


def _build_summary(judged: AuditResult) -> AuditSummary:
    return AuditSummary(
        text=_format_card_text(judged),
        document=_round_floats(as_plain(judged)),
        leaks=judged.finding is AuditFinding.LEAKS,
    )


def _compute_observation_digest(observation: ClipObservation) -> str:
    return digest(to_json(as_plain(observation)))


def _inspect_file(
    reader: MediaReader, file: Path, given: Given, *, texts: bool
) -> InspectedFile | Failure:
    middle = reader.frames(file, sampling="uniform-1", encoding="rgb24")
    if isinstance(middle, Failure):
        return middle
    frame = _round_floats(dict(frame_features(middle.frames[0].rgb())))
    if given["marked"]:
        return InspectedFile(frame=frame)
    marks = find_clip_watermarks(file, reader=reader, read_text=read_texts() if texts else None)
    return marks if isinstance(marks, Failure) else InspectedFileWithMarks(frame=frame, marks=marks)


def _build_observation(piece: ClipSegment, found: InspectedFile | Failure) -> ClipObservation:
    origin = piece.entry.origin
    return ClipObservation(
        clip=piece.entry.name,
        creator=origin.creator if isinstance(origin, Generated) else None,
        group=piece.entry.group or piece.family or piece.source,
        facts=piece.clip.facts,
        frame=found if isinstance(found, Failure) else found.frame,
        watermarks=found if isinstance(found, Failure) else _get_watermarks(piece, found),
    )


def _get_watermarks(piece: ClipSegment, found: InspectedFile) -> WatermarkSearch:
    if isinstance(found, InspectedFileWithMarks):
        return found.marks
    return _MARKS.validate_python(piece.notes[WATERMARK])


def _round_floats(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.{_DIGITS}g}")
        case dict():
            return {key: _round_floats(item) for key, item in value.items()}
        case list():
            return [_round_floats(item) for item in value]
        case _:
            return value


def _format_card_text(judged: AuditResult) -> str:
    """Format the audit for the data card."""
    rows = "\n".join(map(_format_view_row, judged.views))
    remarks = " ".join(iter_notes(judged))
    return (
        f"{_WORDS[judged.finding]}\n\n| a model that sees only | finds | AUC, seen creators [95 % interval] | unseen creators | p | what tells most |\n"
        f"| --- | --- | --- | --- | --- | --- |\n{rows}\n\n{remarks} A frame is part of looking, so it warns and does not decide. "
        "`audit.json` holds the details."
    )


_WORDS: Final = {
    AuditFinding.LEAKS: "**The labels leak**: a score on this benchmark may be read off the files.",
    AuditFinding.CLEAN: "No leak was found.",
    AuditFinding.INCONCLUSIVE: "No leak was proven, and the intervals do not exclude one. Add scenes, or clips of both labels.",
}


def _format_view_row(view: ViewAudit) -> str:
    cells = " | ".join(
        format_auc(auc) if isinstance(auc, Estimate) else "—" for auc in (view.auc, view.transfer)
    )
    tells = ", ".join(leak.feature for leak in view.leaks[:3]) or "—"
    return f"| {view.view.value} | {view.finding.value} | {cells} | {format_p_value(view.p_value)} | {tells} |"
