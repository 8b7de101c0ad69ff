"""`trace`: real or generated, and where, when and why a clip looks generated (DeepTraceReward)."""

from typing import Final

from unreel.core.verdict import TraceVerdict
from unreel.protocols.protocol import Protocol
from unreel.protocols.trace.parser import parse
from unreel.protocols.trace.prompts import PROMPTS
from unreel.protocols.trace.scorer import INSTRUMENT, score
from unreel.protocols.trace.truth import TraceTruth

TRACE: Final[Protocol[TraceTruth, TraceVerdict]] = Protocol(
    instrument=INSTRUMENT, prompts=PROMPTS, parse=parse, score=score
)
