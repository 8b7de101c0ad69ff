"""The protocol `reality`: is a clip real or generated (Video Reality Test)."""

from collections.abc import Sequence

from unreel.core.clip import Origin
from unreel.core.registry import LazyImport
from unreel.core.verdict import RealityVerdict
from unreel.protocols.protocol import ClipGroundTruth, Protocol, ProtocolGroundTruth
from unreel.protocols.reality.metrics import INSTRUMENT, METRICS
from unreel.protocols.reality.prompts import PROMPTS, WORDING


def _get_true_origins(
    ground_truth: Sequence[ClipGroundTruth],
    *,
    duration_us: int | None,  # noqa: ARG001
) -> tuple[Origin, ...]:
    (clip,) = ground_truth
    return (clip.origin,)


REALITY: Protocol[Origin, RealityVerdict] = Protocol(
    instrument=INSTRUMENT,
    title="Real or generated",
    prompts=PROMPTS,
    parse=LazyImport("unreel.protocols.reality.parser:parse_reality_answer"),
    score=LazyImport("unreel.protocols.reality.scorer:compute_reality_scorecard"),
    truths=ProtocolGroundTruth(kind=Origin, of=_get_true_origins),
    wording=WORDING,
    figures=METRICS,
    tells_sides=True,
    reads_since=1,
)
