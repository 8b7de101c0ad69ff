"""The one way from an answer's text to a verdict, whoever asked and wherever the text was kept."""

from typing import Any

from unreel.core.facts import VideoFacts
from unreel.core.verdict import Verdict
from unreel.protocols.protocol import Mode, Protocol, Reading
from unreel.protocols.space import declare_space


def read_text(
    text: str,
    instrument: Protocol[Any, Any],
    *,
    prompt: str,
    mode: Mode,
    box_space: str | None,
    video: VideoFacts,
) -> Verdict:
    """What `text` says as an answer to the prompt variant `prompt` about a clip with that `video`.

    Raises:
        InvalidSettingError: `box_space` is no space that anybody declares.
    """
    space = None
    if box_space is not None:
        space = declare_space(box_space, width=video.width, height=video.height)
    verdict: Verdict = instrument.parse(text, Reading(mode=mode, prompt=prompt, space=space))
    return verdict
