"""Test whether file properties instead of content distinguish an entry's clips from real clips."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from unreel.arena.submission.clip_inspection import ClipInspection
from unreel.arena.submission.finding import EntryFinding, FindingSeverity
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure
from unreel.curation.audit.audit import AuditFinding as Audited
from unreel.curation.audit.audit import AuditResult, audit
from unreel.curation.audit.features import ClipObservation, FeatureView

LEAST_CLIPS: Final = 6
"""Of both sides: with fewer, a property that only one side has may be chance."""
_REAL: Final = "real "
_ENTRY: Final = "entry "


def find_telltales(
    entered: Sequence[ClipInspection], real: Sequence[ClipInspection], *, seed: int
) -> Iterator[EntryFinding]:
    """Yield warnings about properties that distinguish an entry's clips from real clips.

    The warnings are visible watermarks, properties that all clips of the entry and no real clip
    have, and findings of the audit.
    """
    yield from _iter_watermark_findings(entered)
    if min(len(entered), len(real)) >= LEAST_CLIPS:
        yield from _iter_property_findings(entered, real)
        judged = audit(
            [*_iter_observations(entered, "entry"), *_iter_observations(real, None)], seed=seed
        )
        yield from _iter_audit_findings(judged)


def _iter_watermark_findings(entered: Sequence[ClipInspection]) -> Iterator[EntryFinding]:
    for look in entered:
        if not isinstance(look.marks, Failure) and (look.marks.found or look.marks.roaming):
            words = (
                "a mark is seen on the picture, by which its maker is known. Hand in clips without"
            )
            name = look.subject.name
            yield EntryFinding(
                check="watermark", weight=FindingSeverity.WARNS, words=words, clips=(name,)
            )


def _iter_property_findings(
    entered: Sequence[ClipInspection], real: Sequence[ClipInspection]
) -> Iterator[EntryFinding]:
    ours = [_format_file_properties(look.facts) for look in entered]
    theirs = [_format_file_properties(look.facts) for look in real]
    for key, value in ours[0].items():
        if all(own[key] == value for own in ours) and all(own[key] != value for own in theirs):
            words = f"{key} is {value!a} in every clip, and in no real one: file properties reveal the label"
            yield EntryFinding(check="audit", weight=FindingSeverity.WARNS, words=words)


def _format_file_properties(facts: ClipFacts) -> Mapping[str, str]:
    video = facts.video
    return {
        "the container": facts.container,
        "the codec": video.codec,
        "the pixel format": video.pixel_format,
        "the frame rate": str(video.average_rate),
        "the frame size": f"{video.width} x {video.height}",
        "the sound": ", ".join(f"{a.codec} {a.sample_rate_hz}" for a in facts.audio) or "none",
        "what the file says of itself": ", ".join(
            f"{t.name} {t.value}".strip() for t in facts.tags
        ),
    }


def _iter_observations(
    looks: Sequence[ClipInspection], creator: str | None
) -> Iterator[ClipObservation]:
    kind = _REAL if creator is None else _ENTRY
    for look in looks:
        yield ClipObservation(
            clip=kind + look.subject.name,
            creator=creator,
            group=look.subject.scene,
            facts=look.facts,
            frame=look.frame,
            watermarks=look.marks,
        )


def _iter_audit_findings(judged: AuditResult) -> Iterator[EntryFinding]:
    for view in judged.views:
        if view.view is FeatureView.FRAME or view.finding is not Audited.LEAKS:
            continue
        tells = ", ".join(leak.feature for leak in view.leaks[:3])
        words = f"a model that sees only the {view.view.value} separates it from real clips ({view.auc}), by {tells}"
        yield EntryFinding(check="audit", weight=FindingSeverity.WARNS, words=words)
