"""`reality`: real or generated, a game of reviewers against creators (Video Reality Test)."""

from typing import Final

from unreel.core.clip import Origin
from unreel.core.verdict import RealityVerdict
from unreel.protocols.protocol import Protocol
from unreel.protocols.reality.parser import parse
from unreel.protocols.reality.prompts import PROMPTS
from unreel.protocols.reality.scorer import INSTRUMENT, score

REALITY: Final[Protocol[Origin, RealityVerdict]] = Protocol(
    instrument=INSTRUMENT, prompts=PROMPTS, parse=parse, score=score
)
