"""`reality` in words."""

from collections.abc import Sequence
from typing import Final

from unreel.core.clip import Origin, Real
from unreel.core.verdict import RealityVerdict
from unreel.protocols.wording import EVEN, Wording, say_label


def _right(truth: Origin) -> str:
    return "1" if isinstance(truth, Real) else "0"


def _phrase(p_generated: Sequence[float], _prompt: str) -> str:
    return f"<answer>{int(p_generated[0] <= EVEN)}</answer>"


WORDING: Final[Wording[Origin, RealityVerdict]] = Wording(
    decides="label", say=say_label, right=_right, phrase=_phrase
)
