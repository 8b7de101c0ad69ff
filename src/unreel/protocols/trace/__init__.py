"""The protocol `trace`: where, when and why a clip looks generated (DeepTraceReward)."""

from unreel.core.registry import LazyImport
from unreel.core.verdict import TraceVerdict
from unreel.protocols.protocol import Protocol, ProtocolGroundTruth
from unreel.protocols.trace.ground_truth import TraceTruth, build_trace_truths
from unreel.protocols.trace.metrics import INSTRUMENT, METRICS
from unreel.protocols.trace.prompts import PROMPTS, WORDING

TRACE: Protocol[TraceTruth, TraceVerdict] = Protocol(
    instrument=INSTRUMENT,
    title="Where, when and why",
    prompts=PROMPTS,
    parse=LazyImport("unreel.protocols.trace.parser:parse_trace_answer"),
    score=LazyImport("unreel.protocols.trace.scorer:compute_trace_scorecard"),
    truths=ProtocolGroundTruth(kind=TraceTruth, of=build_trace_truths),
    wording=WORDING,
    figures=METRICS,
    tells_sides=True,
    needs_box_space=True,
    shows_times=True,
    sampling="fps-2",
    packed=LazyImport("unreel.protocols.trace.compact_columns:create_compact_trace_columns"),
)
