"""Questions of the protocol `preference` (which of two clips is real), and texts of its verdicts."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from unreel.core.verdict import Position, PreferenceVerdict
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.protocol import EVEN, ProtocolPrompt, ProtocolTexts

SOURCE = "Video Reality Test, arXiv 2512.13281"

_PRINTED = (
    "<video><video>Based on the previous two videos, please identify which one is real. Respond "
    'with "1" if the first video is real and "2" if the second video is real. First, think about '
    "the reasoning process, and then provide the answer. The reasoning process should be "
    "enclosed within <think></think>tags, and the answer should be enclosed within "
    '<answer></answer>tags. Respond with "1" for real and "0" for fake. For example: '
    "<think>reasoning process here </think><answer>answer here </answer>."
)
# Asks about one video, although two are shown.
_PRINTED_DIRECT = (
    "<video><video>Given the following video, please determine if the video is real or fake. "
    'Respond with "1" for real and "0" for fake. Provide the answer directly within '
    "<answer></answer>tags, like this: <answer>answer here </answer>."
)
_CONTRADICTION = 'Respond with "1" for real and "0" for fake. '
"""Printed sentence that asks for 1 or 0, although the prompt has asked for 1 or 2 before."""
_VIDEO_TOKENS = "<video><video>"

PROMPTS: Mapping[str, ProtocolPrompt] = MappingProxyType(
    {
        "paper": ProtocolPrompt(
            text=_PRINTED.removeprefix(_VIDEO_TOKENS).partition(" First, think")[0],
            source=SOURCE,
            wording="derived",
        ),
        "reasoning": ProtocolPrompt(
            text=_PRINTED.replace(_CONTRADICTION, ""), source=SOURCE, wording="derived"
        ),
        "as-printed": ProtocolPrompt(text=_PRINTED, source=SOURCE),
        "as-printed-direct": ProtocolPrompt(text=_PRINTED_DIRECT, source=SOURCE),
    }
)
TAGGED_PROMPTS = frozenset({"reasoning", "as-printed", "as-printed-direct"})
"""Variants answered in a tag; the others are answered by the digit alone."""


_TRAINABLE = frozenset({"paper"})
"""Prompts for training; the others ask for reasoning, which no truth has, or for 1 or 0 about two clips."""


def _format_position(real_position: Position) -> str:
    return f"the {real_position.value} is real"


def _format_correct_answer(true_position: Position) -> str:
    return "1" if true_position is Position.FIRST else "2"


def _format_answer_from_probability(p_generated: Sequence[float], prompt: str) -> str:
    first, second = p_generated
    is_first = first <= EVEN if first == second else first < second
    digit = "1" if is_first else "2"
    return f"<answer>{digit}</answer>" if prompt in TAGGED_PROMPTS else digit


def _format_training_answer(true_position: Position, _prompt: str, _space: BoxSpace | None) -> str:
    return _format_correct_answer(true_position)


WORDING: ProtocolTexts[Position, PreferenceVerdict] = ProtocolTexts(
    decides="real",
    say=_format_position,
    right=_format_correct_answer,
    phrase=_format_answer_from_probability,
    teaches=_TRAINABLE,
    write=_format_training_answer,
)
