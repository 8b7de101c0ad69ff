"""Sheets about made-up clips, with frames of any size at any instants."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from PIL import Image

from unreel.core.question import Condition
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.contract import ClipInput, ReviewRequest, ShownFrame
from unreel.testing.reviewers import sample_clip_input


def shown(
    instants: Iterable[Fraction | int], *, size: tuple[int, int] = (112, 84), seed: int = 0
) -> ClipInput:
    """A clip of which frames are shown at those `instants`: a bright square that moves."""
    frames = tuple(
        ShownFrame(
            index=number,
            at_s=Fraction(at_s),
            width=size[0],
            height=size[1],
            jpeg=_square(number + seed, size),
        )
        for number, at_s in enumerate(instants)
    )
    return replace(sample_clip_input(f"clip-{seed}"), frames=frames)


def ask(
    inputs: Sequence[ClipInput],
    *,
    instrument: str = "trace",
    prompt: str = "fine-tuning-no-explanation",
    condition: Condition | None = None,
) -> ReviewRequest:
    """The question of `instrument` about `inputs`."""
    asked = get_protocol(instrument)
    return ReviewRequest(
        key="question",
        instrument=asked.instrument,
        prompt=asked.prompt(prompt).text,
        inputs=tuple(inputs),
        condition=condition or Condition(prompt=prompt),
    )


def _square(place: int, size: tuple[int, int]) -> bytes:
    picture = Image.new("RGB", size, (30 + 7 * place % 100, 60, 90))
    side = max(1, min(size) // 4)
    left = 5 * place % max(1, size[0] - side)
    picture.paste((220, 200, 40), (left, side, left + side, 2 * side))
    out = io.BytesIO()
    picture.save(out, format="JPEG", quality=95)
    return out.getvalue()
