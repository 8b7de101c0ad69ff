"""Convert human answers into verdicts of the protocols, so that they are scored like models."""

from typing import Final

from unreel.annotation.judgements import (
    AnyValue,
    PreferenceAnswer,
    RatingAnswer,
    TraceAnswer,
    VoteAnswer,
)
from unreel.annotation.publishing.truth import rubric_rating
from unreel.core.judgement import Label, Rating
from unreel.core.trace import Trace
from unreel.core.verdict import (
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    UnparsedReason,
)

_SILENT: Final = Unparsed(UnparsedReason.MISSING, "")
_CANNOT_TELL: Final = Unparsed(UnparsedReason.AMBIGUOUS, "cannot tell")
_DISCARDED: Final = Unparsed(UnparsedReason.MISSING, "discarded")


def label_of(value: AnyValue | None) -> Label | Unparsed:
    """Return real or generated; a missing or undecided answer is unreadable."""
    if value is None:
        return Unparsed(UnparsedReason.AMBIGUOUS, "not settled")
    said = value.label if isinstance(value, TraceAnswer | VoteAnswer) else None
    return said if said is not None else _CANNOT_TELL


def reality_verdict(value: AnyValue | None) -> RealityVerdict:
    """Return the verdict under `reality`."""
    return RealityVerdict(label=label_of(value))


def trace_verdict(value: AnyValue | None) -> TraceVerdict:
    """Return the verdict under `trace`: models name one fault, so the first marked one is used."""
    traces = value.traces if isinstance(value, TraceAnswer) else ()
    first = min(traces, key=_onset, default=None)
    return TraceVerdict(
        label=label_of(value),
        box=first.track[0].box if first and first.track else _SILENT,
        start_us=first.span.start_us if first else _SILENT,
        explanation=(first.explanation if first else "") or _SILENT,
    )


def realism_verdict(rating: Rating | None) -> RealismVerdict:
    """Return the verdict of a rating under `realism`; a discarded clip has no score."""
    if rating is None:
        return RealismVerdict(score=_DISCARDED, problem=_SILENT, adherence=_SILENT)
    return RealismVerdict(
        score=rating.score,
        problem=rating.problem or _SILENT,
        adherence=rating.adherence or _SILENT,
        family=rating.family,
    )


def preference_verdict(value: AnyValue | None) -> PreferenceVerdict:
    """The clip that was preferred is the one that was taken for real."""
    if not isinstance(value, PreferenceAnswer):
        return PreferenceVerdict(real=Unparsed(UnparsedReason.AMBIGUOUS, "not settled"))
    return PreferenceVerdict(real=value.better)


def rating_of(value: AnyValue, *, duration_us: int) -> Rating | None:
    """Its score: as given, or by the rubric from marked traces; `None` where it has none."""
    match value:
        case RatingAnswer():
            return value.rating
        case TraceAnswer():
            return rubric_rating(value.traces, duration_us=duration_us)
        case _:
            return None


def _onset(trace: Trace) -> tuple[int, int]:
    return trace.span.start_us, trace.span.end_us
