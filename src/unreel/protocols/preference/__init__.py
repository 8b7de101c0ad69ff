"""`preference`: which of two clips is real (Video Reality Test)."""

from typing import Final

from unreel.core.verdict import Position, PreferenceVerdict
from unreel.protocols.preference.parser import parse
from unreel.protocols.preference.prompts import PROMPTS
from unreel.protocols.preference.scorer import INSTRUMENT, score
from unreel.protocols.protocol import Protocol

PREFERENCE: Final[Protocol[Position, PreferenceVerdict]] = Protocol(
    instrument=INSTRUMENT, prompts=PROMPTS, parse=parse, score=score
)
