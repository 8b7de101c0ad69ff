"""Audit step: reads the audit features of each segment and audits the labels of the set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from unreel.core.clip import Generated
from unreel.core.content_ids import digest
from unreel.core.estimate import Estimate
from unreel.core.failure import Failure
from unreel.core.span import TimeSpan
from unreel.curation.audit.audit_report import format_auc, format_p_value, iter_audit_notes
from unreel.curation.audit.clip_features import AuditFeatureSet, ClipAuditData, WindowAuditData
from unreel.curation.audit.frame_features import compute_frame_features
from unreel.curation.audit.label_leaks import (
    FeatureSetAudit,
    LabelLeakAudit,
    LabelLeakFinding,
    add_window_audit,
    audit_label_leaks,
)
from unreel.curation.audit.windows import read_window_features
from unreel.curation.recipe import AuditRecipeSection
from unreel.curation.segment import ClipSegment
from unreel.curation.segment_table import ReiterableStream, SegmentTable
from unreel.curation.splice.step import SPLICE, get_part_spans
from unreel.curation.state import AuditSummary, CurationJob, CurationState
from unreel.curation.step_execution import (
    CurationContext,
    CurationStepRequest,
    Given,
    VersionedCurationStep,
    format_canonical_json,
    to_json_values,
)
from unreel.curation.watermark.clip_watermarks import find_clip_watermarks
from unreel.curation.watermark.regions_and_ocr import WatermarkSearchResult
from unreel.curation.watermark.step import WATERMARK, load_ocr_reader
from unreel.media.reader import MediaReader

AUDIT: Final = "audit"
_DIGITS: Final = 6
"""Number of significant digits of stored features: further digits depend on the number of threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MiddleFrameAuditFeatures:
    """Audit features of a clip's middle frame, for a clip that was searched for watermarks earlier."""

    frame: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFrameFeaturesWithWatermarks(MiddleFrameAuditFeatures):
    """Audit features of a clip's middle frame and its watermarks, for a clip not searched before."""

    marks: WatermarkSearchResult


_MARKS: Final = TypeAdapter(WatermarkSearchResult)
_SEEN: Final[TypeAdapter[MiddleFrameAuditFeatures]] = TypeAdapter(
    AuditFrameFeaturesWithWatermarks | MiddleFrameAuditFeatures
)
_SUMMARY: Final = TypeAdapter(AuditSummary)


def run_audit_step(
    section: AuditRecipeSection, work: CurationJob, state: CurationState
) -> CurationState:
    """Test whether the labels of the segments can be predicted without watching the clips.

    Watermarks from an earlier step are reused; other clips are searched for watermarks now.
    """
    state.require_pieces(AUDIT)
    pieces, seed, bench = state.pieces, work.recipe.seed, work.bench
    step = VersionedCurationStep(
        name=AUDIT, version=1, settings={"texts": section.texts}, finds=_SEEN
    )
    subjects = ReiterableStream(lambda: map(_build_audit_request, pieces))
    look = partial(_read_audit_frame_features, texts=section.texts)
    bench.ask(step, subjects, look)

    def observed() -> Iterator[tuple[ClipSegment, ClipAuditData]]:
        seen = bench.recall(step, subjects)
        for piece, found in zip(pieces, seen, strict=True):
            yield piece, _build_clip_audit_data(piece, found)

    whole = VersionedCurationStep(
        name=f"{AUDIT}-verdict", version=4, settings={"seed": seed}, finds=_SUMMARY
    )
    members = ReiterableStream(
        lambda: (
            piece.subject(observed=_compute_audit_data_digest(seen), **_get_window_request(piece))
            for piece, seen in observed()
        )
    )
    windows = _SplicedWindows(bench, pieces)
    windows.read()

    def judged() -> LabelLeakAudit:
        clips = audit_label_leaks((seen for _, seen in observed()), seed=seed)
        return windows.add_audit(clips, seed=seed)

    return replace(
        state, audit=bench.conclude(whole, members, lambda: _build_audit_summary(judged()))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SplicedVideoWindowFeatures:
    """Features of windows of one spliced video."""

    windows: tuple[WindowAuditData, ...]


class _SplicedWindows:
    """Windows of all spliced videos among the segments."""

    def __init__(self, bench: CurationContext, pieces: SegmentTable) -> None:
        self._bench = bench
        self._step = VersionedCurationStep(
            name=f"{AUDIT}-windows", version=3, finds=TypeAdapter(SplicedVideoWindowFeatures)
        )
        self._subjects = ReiterableStream(
            lambda: (
                piece.subject(**request)
                for piece in pieces
                if (request := _get_window_request(piece))
            )
        )

    def read(self) -> None:
        """Read the windows of the videos that have no stored result."""
        self._bench.ask(self._step, self._subjects, _read_windows)

    def add_audit(self, clips: LabelLeakAudit, *, seed: int) -> LabelLeakAudit:
        """Return `clips` with the audit of the windows; unchanged if no segment is spliced."""
        if not any(True for _ in self._subjects):
            return clips
        found = self._bench.recall(self._step, self._subjects)
        windows = [
            one
            for own in found
            if isinstance(own, SplicedVideoWindowFeatures)
            for one in own.windows
        ]
        judged = audit_label_leaks(windows, seed=seed, views=[AuditFeatureSet.WINDOW])
        return add_window_audit(clips, judged)


def _get_window_request(piece: ClipSegment) -> dict[str, Any]:
    if SPLICE not in piece.notes:
        return {}
    spans = [[trace.span.start_us, trace.span.end_us] for trace in piece.entry.traces]
    parts = [[part.start_us, part.end_us] for part in get_part_spans(piece)]
    return {
        "name": piece.entry.name,
        "group": piece.entry.group,
        "parts": parts,
        "segments": spans,
    }


def _read_windows(
    reader: MediaReader, file: Path, given: Given
) -> SplicedVideoWindowFeatures | Failure:
    windows = read_window_features(
        file,
        clip=given["name"],
        group=given["group"],
        parts=[TimeSpan(*ends) for ends in given["parts"]],
        segments=[TimeSpan(*ends) for ends in given["segments"]],
        reader=reader,
    )
    if isinstance(windows, Failure):
        return windows
    rounded = [replace(own, features=_round_floats(dict(own.features))) for own in windows]
    return SplicedVideoWindowFeatures(windows=tuple(rounded))


def _build_audit_request(piece: ClipSegment) -> CurationStepRequest:
    return piece.subject(marked=WATERMARK in piece.notes)


def _build_audit_summary(judged: LabelLeakAudit) -> AuditSummary:
    return AuditSummary(
        text=_format_audit_card_section(judged),
        document=_round_floats(to_json_values(judged)),
        leaks=judged.finding is LabelLeakFinding.LEAKS,
    )


def _compute_audit_data_digest(observation: ClipAuditData) -> str:
    return digest(format_canonical_json(to_json_values(observation)))


def _read_audit_frame_features(
    reader: MediaReader, file: Path, given: Given, *, texts: bool
) -> MiddleFrameAuditFeatures | Failure:
    middle = reader.frames(file, sampling="uniform-1", encoding="rgb24")
    if isinstance(middle, Failure):
        return middle
    frame = _round_floats(dict(compute_frame_features(middle.frames[0].rgb())))
    if given["marked"]:
        return MiddleFrameAuditFeatures(frame=frame)
    marks = find_clip_watermarks(
        file, reader=reader, read_text=load_ocr_reader() if texts else None
    )
    return (
        marks
        if isinstance(marks, Failure)
        else AuditFrameFeaturesWithWatermarks(frame=frame, marks=marks)
    )


def _build_clip_audit_data(
    piece: ClipSegment, found: MiddleFrameAuditFeatures | Failure
) -> ClipAuditData:
    origin = piece.entry.origin
    return ClipAuditData(
        clip=piece.entry.name,
        creator=origin.creator if isinstance(origin, Generated) else None,
        group=piece.entry.group or piece.family or piece.source,
        facts=piece.clip.facts,
        frame=found if isinstance(found, Failure) else found.frame,
        watermarks=found if isinstance(found, Failure) else _get_watermarks(piece, found),
    )


def _get_watermarks(piece: ClipSegment, found: MiddleFrameAuditFeatures) -> WatermarkSearchResult:
    if isinstance(found, AuditFrameFeaturesWithWatermarks):
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


def _format_audit_card_section(judged: LabelLeakAudit) -> str:
    """Format the label audit as a Markdown section of the data card."""
    rows = "\n".join(map(_format_feature_set_row, judged.views))
    remarks = " ".join(iter_audit_notes(judged))
    return (
        f"{_WORDS[judged.finding]}\n\n| model input | finding | AUC, seen creators [95 % interval] | unseen creators | p | strongest properties |\n"
        f"| --- | --- | --- | --- | --- | --- |\n{rows}\n\n{remarks} A frame shows the scene, so it warns and does not decide. "
        "`audit.json` contains the details."
    )


_WORDS: Final = {
    LabelLeakFinding.LEAKS: "**The labels leak**: a score on this benchmark may come from file properties alone.",
    LabelLeakFinding.CLEAN: "No leak was found.",
    LabelLeakFinding.INCONCLUSIVE: "No leak was proven, and the intervals do not exclude one. Add scenes, or clips of both labels.",
}


def _format_feature_set_row(view: FeatureSetAudit) -> str:
    cells = " | ".join(
        format_auc(auc) if isinstance(auc, Estimate) else "—" for auc in (view.auc, view.transfer)
    )
    tells = ", ".join(leak.feature for leak in view.leaks[:3]) or "—"
    return f"| {view.view.value} | {view.finding.value} | {cells} | {format_p_value(view.p_value)} | {tells} |"
