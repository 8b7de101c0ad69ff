"""`realism`: a score from 1 to 5 with its reasons (VideoRealBench)."""

from typing import Final

from unreel.core.judgement import Rating
from unreel.core.verdict import RealismVerdict
from unreel.protocols.protocol import Protocol
from unreel.protocols.realism.parser import parse
from unreel.protocols.realism.prompts import PROMPTS
from unreel.protocols.realism.scorer import INSTRUMENT, score

REALISM: Final[Protocol[Rating, RealismVerdict]] = Protocol(
    instrument=INSTRUMENT, prompts=PROMPTS, parse=parse, score=score
)
