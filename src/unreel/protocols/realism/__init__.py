"""The protocol `realism`: a realism score from 1 to 5 with its reasons (VideoRealBench)."""

from collections.abc import Sequence

from unreel.core.errors import InvalidValueError
from unreel.core.judgement import Rating
from unreel.core.registry import LazyImport
from unreel.core.verdict import RealismVerdict
from unreel.protocols.protocol import ClipGroundTruth, Protocol, ProtocolGroundTruth
from unreel.protocols.realism.metrics import INSTRUMENT, METRICS
from unreel.protocols.realism.prompts import PROMPTS, WORDING


def _get_true_ratings(
    ground_truth: Sequence[ClipGroundTruth],
    *,
    duration_us: int | None,  # noqa: ARG001
) -> tuple[Rating, ...]:
    (clip,) = ground_truth
    if clip.rating is None:
        raise InvalidValueError("no rating. Add a score column, or choose another protocol")
    return (clip.rating,)


REALISM: Protocol[Rating, RealismVerdict] = Protocol(
    instrument=INSTRUMENT,
    title="How realistic, 1 to 5",
    prompts=PROMPTS,
    parse=LazyImport("unreel.protocols.realism.parser:parse_realism_answer"),
    score=LazyImport("unreel.protocols.realism.scorer:compute_realism_scorecard"),
    truths=ProtocolGroundTruth(kind=Rating, of=_get_true_ratings),
    wording=WORDING,
    figures=METRICS,
    reads_since=1,
)
