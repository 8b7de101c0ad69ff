"""The question of `preference`: which of two clips is real."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from unreel.protocols.protocol import Prompt

SOURCE: Final = "Video Reality Test, arXiv 2512.13281"

PROMPTS: Final[Mapping[str, Prompt]] = MappingProxyType(
    {
        # The printed text goes on to ask for 1 or 0, which contradicts this: it is left out.
        "paper": Prompt(
            text=(
                "Based on the previous two videos, please identify which one is real. Respond with "
                '"1" if the first video is real and "2" if the second video is real.'
            ),
            source=SOURCE,
            wording="derived",
        ),
    }
)
