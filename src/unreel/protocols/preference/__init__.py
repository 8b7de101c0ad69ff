"""The protocol `preference`: which of two clips is real (Video Reality Test)."""

from collections.abc import Sequence

from unreel.core.judgement import Label
from unreel.core.registry import LazyImport
from unreel.core.verdict import Position, PreferenceVerdict
from unreel.protocols.preference.metrics import INSTRUMENT, METRICS
from unreel.protocols.preference.prompts import PROMPTS, WORDING
from unreel.protocols.protocol import ClipGroundTruth, Protocol, ProtocolGroundTruth


def _get_true_positions(
    ground_truth: Sequence[ClipGroundTruth],
    *,
    duration_us: int | None,  # noqa: ARG001
) -> tuple[Position, ...]:
    first, _ = ground_truth
    return (Position.FIRST if first.label is Label.REAL else Position.SECOND,)


PREFERENCE: Protocol[Position, PreferenceVerdict] = Protocol(
    instrument=INSTRUMENT,
    title="Which of two is real",
    prompts=PROMPTS,
    parse=LazyImport("unreel.protocols.preference.parser:parse_preference_answer"),
    score=LazyImport("unreel.protocols.preference.scorer:compute_preference_scorecard"),
    truths=ProtocolGroundTruth(kind=Position, of=_get_true_positions),
    wording=WORDING,
    figures=METRICS,
    subject="pair",
    tells_sides=True,
)
