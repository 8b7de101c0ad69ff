"""Parsing of an answer's text to a verdict, for every caller."""

from functools import lru_cache
from typing import Any

from unreel.core.verdict import Verdict
from unreel.protocols.protocol import Mode, ParserOptions, Protocol
from unreel.protocols.space import declare_space


def read_text(
    text: str,
    instrument: Protocol[Any, Any],
    *,
    prompt: str,
    mode: Mode,
    box_space: str | None,
    size: tuple[int, int],
) -> Verdict:
    """Parse `text` as an answer to the prompt variant `prompt`; `size` is the frame size.

    Raises:
        InvalidSettingError: `box_space` is not a known space.
    """
    verdict: Verdict = instrument.parse(text, _build_parser_options(mode, prompt, box_space, size))
    return verdict


@lru_cache(maxsize=256)
def _build_parser_options(
    mode: Mode, prompt: str, box_space: str | None, size: tuple[int, int]
) -> ParserOptions:
    space = None
    if box_space is not None:
        width, height = size
        space = declare_space(box_space, width=width, height=height)
    return ParserOptions(mode=mode, prompt=prompt, space=space)
