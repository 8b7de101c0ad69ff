"""The protocol `trace`: where, when and why a clip looks generated (DeepTraceReward)."""

from typing import Final

from unreel.core.registry import LazyImport
from unreel.core.verdict import TraceVerdict
from unreel.protocols.protocol import Protocol, ProtocolGroundTruth
from unreel.protocols.trace.figures import FIGURES, INSTRUMENT
from unreel.protocols.trace.prompts import PROMPTS, WORDING
from unreel.protocols.trace.truth import TraceTruth, build_trace_truths

TRACE: Final[Protocol[TraceTruth, TraceVerdict]] = Protocol(
    instrument=INSTRUMENT,
    title="Where, when and why",
    prompts=PROMPTS,
    parse=LazyImport("unreel.protocols.trace.parser:parse"),
    score=LazyImport("unreel.protocols.trace.scorer:score"),
    truths=ProtocolGroundTruth(kind=TraceTruth, of=build_trace_truths),
    wording=WORDING,
    figures=FIGURES,
    tells_sides=True,
    needs_box_space=True,
    shows_times=True,
    sampling="fps-2",
    packed=LazyImport("unreel.protocols.trace.packing:packed_columns"),
)
