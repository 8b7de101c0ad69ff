"""Audit step: reads the audit features of each segment and audits the labels of the set."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from unreel.core.clip import Generated
from unreel.core.content_ids import digest
from unreel.core.estimate import Estimate, Measured
from unreel.core.failure import Failure
from unreel.core.safe_text import sanitise_line
from unreel.curation.audit.clip_features import (
    AuditFeatureSet,
    ClipAuditData,
    compute_frame_features,
)
from unreel.curation.audit.label_leaks import (
    ALARM_RATE,
    CHANCE,
    LEAK_FROM,
    LabelLeakAudit,
    LabelLeakFinding,
    audit_label_leaks,
)
from unreel.curation.recipe import AuditRecipeSection
from unreel.curation.segment import (
    AuditSummary,
    ClipSegment,
    CurationJob,
    CurationState,
    ReiterableStream,
)
from unreel.curation.step_execution import (
    Given,
    VersionedCurationStep,
    format_canonical_json,
    to_json_values,
)
from unreel.curation.watermark.detection import WatermarkSearchResult
from unreel.curation.watermark.step import WATERMARK, find_clip_watermarks, load_ocr_reader
from unreel.media.reader import MediaReader

AUDIT_JSON = TypeAdapter(LabelLeakAudit)
"""Serialiser of audits: `dump_json` stores an audit, `validate_json` restores it."""

_SIGHTS = {
    AuditFeatureSet.METADATA: "file properties: container, codec, bit rate, resolution, frame rate, length, sound, tags",
    AuditFeatureSet.FRAME: "low-level properties of one frame",
    AuditFeatureSet.WATERMARK: "detected overlays",
}
_SENTENCES = {
    LabelLeakFinding.LEAKS: "The labels leak: a model that does not analyse the scene can separate real from generated clips.",
    LabelLeakFinding.CLEAN: "No leak was found in metadata or overlays.",
    LabelLeakFinding.INCONCLUSIVE: "No leak was proven, and the intervals do not exclude one. Add scenes, or audit more clips of both labels.",
}

ALARMS = (
    "p is the fraction of datasets ({n} of the same clips with labels permuted by source, and this one) in which any model "
    "reaches the same AUC. A model is reported as leaking only at {rate} or less, so at most {rate:.0%} of datasets whose "
    "files are independent of their labels give a false alarm."
)
"""Explanation of p on the data card."""
QUESTIONS = (
    "AUC answers two questions: can a reviewer that knows these creators predict the label of a new scene from this input alone "
    "(seen creators; this decides), and does that generalise to unknown creators (unseen creators; this does not decide). "
    "0.5 is chance. Below 0.5, properties that predict the label for some creators mislead for others: no leak."
)
UNGROUPED = (
    "No two clips share a `group`. If some show one scene or come from one source, set `group`: of simulated datasets without a "
    "leak and without `group` for scenes of two or five clips, {alarms} gave a false alarm."
)
UNGROUPED_ALARMS = "6 and 27 of 100"
"""False alarms for undeclared scenes of two and of five clips, by `benchmarks/audit_alarms.py --sizes`."""


def format_audit_markdown(audit: LabelLeakAudit) -> str:
    """Format the audit as a Markdown section of a data card."""
    return "\n".join(_iter_audit_lines(audit)) + "\n"


def _iter_audit_lines(audit: LabelLeakAudit) -> Iterator[str]:
    both = has_separate_creator_aucs(audit)
    aucs = "AUC, seen creators | AUC, unseen creators" if both else "AUC"
    yield f"**{audit.finding.value}.** {_SENTENCES[audit.finding]}"
    yield ""
    yield f"| model input | {aucs} | p | real | generated | creators | unread | finding |"
    yield "|---" * (9 if both else 8) + "|"
    for view in audit.views:
        counts = f"{view.n_real} | {view.n_generated} | {view.n_creators} | {view.n_unread}"
        finding = view.finding.value
        if view.view is AuditFeatureSet.FRAME and view.finding is LabelLeakFinding.LEAKS:
            finding = "warning"
        auc = format_auc(view.auc) + (f" | {format_auc(view.transfer)}" if view.transfer else "")
        yield f"| {_SIGHTS[view.view]} | {auc} | {format_p_value(view.p_value)} | {counts} | {finding} |"
    for note in iter_audit_notes(audit):
        yield ""
        yield note
    for view in audit.views:
        if view.leaks:
            yield ""
            yield f"Strongest single properties in **{view.view.value}**:"
            yield ""
            yield "| property | AUC | generated | real |"
            yield "|---|---|---|---|"
            for leak in view.leaks:
                values = f"{_escape_table_cell(leak.generated)} | {_escape_table_cell(leak.real)}"
                yield f"| {_escape_table_cell(leak.feature)} | {format_auc(leak.auc)} | {values} |"
        if view.giveaways:
            yield ""
            yield f"{view.n_giveaways} clips are identifiable by **{view.view.value}**, for example:"
            yield ""
            for giveaway in view.giveaways:
                because = ", ".join(giveaway.because) or "no single property"
                yield sanitise_line(f"- `{giveaway.clip}` ({giveaway.label.value}): {because}")


def has_separate_creator_aucs(audit: LabelLeakAudit) -> bool:
    """Return whether the audit has two AUCs for each feature set: for seen and for unseen creators.

    Older audits have only one.
    """
    return all(view.transfer is not None for view in audit.views)


def iter_audit_notes(audit: LabelLeakAudit) -> Iterator[str]:
    """Yield the remarks that a data card prints below the table of the audit, one paragraph each."""
    if has_separate_creator_aucs(audit):
        yield QUESTIONS
    if audit.n_relabelled:
        yield ALARMS.format(n=audit.n_relabelled, rate=ALARM_RATE)
    for view in audit.views:
        if view.n_unjudged:
            yield (
                f"{view.n_unjudged} clips could not be audited by **{view.view.value}**: without their scenes, no clips "
                "are left for fitting. Add scenes."
            )
        if (
            view.finding is LabelLeakFinding.CLEAN
            and isinstance(view.auc, Estimate)
            and view.auc.low > CHANCE
        ):
            yield (
                f"**{view.view.value}** is clean but slightly predictive: {format_auc(view.auc)} is above 0.5. A reviewer without other input ranks a "
                f"generated clip above a real one in {view.auc.value:.0%} of pairs; up to {LEAK_FROM:.0%} is not reported as a leak."
            )
    if not audit.grouped:
        yield UNGROUPED.format(alarms=UNGROUPED_ALARMS)


def format_p_value(p_value: float | None) -> str:
    """Format the p-value as a table cell; "—" for `None`."""
    return "—" if p_value is None else f"{p_value:.3f}"


def format_auc(auc: Measured) -> str:
    """Format the AUC with its confidence interval as a table cell, or the reason why it is missing."""
    if not isinstance(auc, Estimate):
        return _escape_table_cell(str(auc))
    return f"{auc.value:.2f} [{auc.low:.2f}, {auc.high:.2f}]"


def _escape_table_cell(text: str) -> str:
    """Escape untrusted text for a table cell, so that it cannot end the cell or start markup."""
    return "".join("\\" + c if c in "\\|`*_[]<>#" else c for c in sanitise_line(text))


AUDIT = "audit"
_DIGITS = 6
"""Number of significant digits of stored features: further digits depend on the number of threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MiddleFrameAuditFeatures:
    """Audit features of a clip's middle frame, for a clip that was searched for watermarks earlier."""

    frame: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFrameFeaturesWithWatermarks(MiddleFrameAuditFeatures):
    """Audit features of a clip's middle frame and its watermarks, for a clip not searched before."""

    marks: WatermarkSearchResult


_WATERMARKS = TypeAdapter(WatermarkSearchResult)
_SEEN: TypeAdapter[MiddleFrameAuditFeatures] = TypeAdapter(
    AuditFrameFeaturesWithWatermarks | MiddleFrameAuditFeatures
)
_SUMMARY = TypeAdapter(AuditSummary)


def run_audit_step(
    section: AuditRecipeSection, job: CurationJob, state: CurationState
) -> CurationState:
    """Test whether the labels of the segments can be predicted without watching the clips.

    Watermarks from an earlier step are reused; other clips are searched for watermarks now.
    """
    state.require_pieces(AUDIT)
    segments, seed, context = state.segments, job.recipe.seed, job.context
    step = VersionedCurationStep(
        name=AUDIT, version=1, settings={"texts": section.texts}, finds=_SEEN
    )
    subjects = ReiterableStream(
        lambda: (segment.subject(marked=WATERMARK in segment.notes) for segment in segments)
    )
    look = partial(_read_audit_frame_features, texts=section.texts)
    context.ask(step, subjects, look)

    def observed() -> Iterator[tuple[ClipSegment, ClipAuditData]]:
        seen = context.recall(step, subjects)
        for segment, found in zip(segments, seen, strict=True):
            origin = segment.entry.origin
            frame: Mapping[str, float] | Failure
            watermarks: WatermarkSearchResult | Failure
            if isinstance(found, Failure):
                frame, watermarks = found, found
            elif isinstance(found, AuditFrameFeaturesWithWatermarks):
                frame, watermarks = found.frame, found.marks
            else:
                frame = found.frame
                watermarks = _WATERMARKS.validate_python(segment.notes[WATERMARK])
            data = ClipAuditData(
                clip=segment.entry.name,
                creator=origin.creator if isinstance(origin, Generated) else None,
                group=segment.entry.group or segment.family or segment.source,
                facts=segment.clip.facts,
                frame=frame,
                watermarks=watermarks,
            )
            yield segment, data

    whole = VersionedCurationStep(
        name=f"{AUDIT}-verdict", version=4, settings={"seed": seed}, finds=_SUMMARY
    )
    members = ReiterableStream(
        lambda: (
            segment.subject(observed=digest(format_canonical_json(to_json_values(data))))
            for segment, data in observed()
        )
    )

    def summarise() -> AuditSummary:
        return _build_audit_summary(audit_label_leaks((d for _, d in observed()), seed=seed))

    return replace(state, audit=context.conclude(whole, members, summarise))


def _build_audit_summary(audit: LabelLeakAudit) -> AuditSummary:
    lines = []
    for view in audit.views:
        aucs = (
            format_auc(a) if isinstance(a, Estimate) else "—" for a in (view.auc, view.transfer)
        )
        features = ", ".join(leak.feature for leak in view.leaks[:3]) or "—"
        cells = (view.view.value, view.finding.value, *aucs, format_p_value(view.p_value), features)
        lines.append(f"| {' | '.join(cells)} |")
    rows = "\n".join(lines)
    remarks = " ".join(iter_audit_notes(audit))
    return AuditSummary(
        text=(
            f"{_WORDS[audit.finding]}\n\n| model input | finding | AUC, seen creators [95 % interval] | unseen creators | p | strongest properties |\n"
            f"| --- | --- | --- | --- | --- | --- |\n{rows}\n\n{remarks} A frame shows the scene, so it warns and does not decide. "
            "`audit.json` contains the details."
        ),
        document=_round_floats(to_json_values(audit)),
        leaks=audit.finding is LabelLeakFinding.LEAKS,
    )


def _read_audit_frame_features(
    reader: MediaReader, file: Path, given: Given, *, texts: bool
) -> MiddleFrameAuditFeatures | Failure:
    middle = reader.frames(file, sampling="uniform-1", encoding="rgb24")
    if isinstance(middle, Failure):
        return middle
    frame = _round_floats(dict(compute_frame_features(middle.frames[0].rgb())))
    if given["marked"]:
        return MiddleFrameAuditFeatures(frame=frame)
    read_text = load_ocr_reader() if texts else None
    watermarks = find_clip_watermarks(file, reader=reader, read_text=read_text)
    if isinstance(watermarks, Failure):
        return watermarks
    return AuditFrameFeaturesWithWatermarks(frame=frame, marks=watermarks)


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


_WORDS = {
    LabelLeakFinding.LEAKS: "**The labels leak**: a score on this benchmark may come from file properties alone.",
    LabelLeakFinding.CLEAN: "No leak was found.",
    LabelLeakFinding.INCONCLUSIVE: "No leak was proven, and the intervals do not exclude one. Add scenes, or clips of both labels.",
}
