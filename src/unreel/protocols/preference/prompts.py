"""The questions of `preference`: which of two clips is real."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unreel.protocols.protocol import ProtocolPrompt

SOURCE: Final = "Video Reality Test, arXiv 2512.13281"

_PRINTED: Final = (
    "<video><video>Based on the previous two videos, please identify which one is real. Respond "
    'with "1" if the first video is real and "2" if the second video is real. First, think about '
    "the reasoning process, and then provide the answer. The reasoning process should be "
    "enclosed within <think></think>tags, and the answer should be enclosed within "
    '<answer></answer>tags. Respond with "1" for real and "0" for fake. For example: '
    "<think>reasoning process here </think><answer>answer here </answer>."
)
# Asks about one video, though two are shown.
_PRINTED_DIRECT: Final = (
    "<video><video>Given the following video, please determine if the video is real or fake. "
    'Respond with "1" for real and "0" for fake. Provide the answer directly within '
    "<answer></answer>tags, like this: <answer>answer here </answer>."
)
_CONTRADICTION: Final = 'Respond with "1" for real and "0" for fake. '
"""The printed sentence that asks for 1 or 0 after 1 or 2 were asked for."""
_MARKS: Final = "<video><video>"

PROMPTS: Final[Mapping[str, ProtocolPrompt]] = MappingProxyType(
    {
        "paper": ProtocolPrompt(
            text=_PRINTED.removeprefix(_MARKS).partition(" First, think")[0],
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
TAGGED_PROMPTS: Final = frozenset({"reasoning", "as-printed", "as-printed-direct"})
"""Variants answered in a tag; the others are answered by the digit alone."""
