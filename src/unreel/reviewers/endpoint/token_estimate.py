"""Estimates of the tokens of a question before it is sent: text by length, pictures by size.

Servers count tokens in different ways and change them. So the formula is part of the estimate,
and the token counts that a server reported for existing answers are preferred to the formula.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from unreel.catalogue.owner_prompts import get_prompt_text
from unreel.core.answer import Usage
from unreel.core.clip import Clip
from unreel.core.question import Question
from unreel.media.picture import compute_scaled_size
from unreel.media.sampling import parse_sampling, plan_frames
from unreel.media.timeline import FrameTimeline
from unreel.protocols.presentation import (
    LONGEST_SIDE,
    format_frame_time,
    format_question_clip_heading,
    shows_frame_times,
    split_prompt_at_clips,
)
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.endpoint.model_families import ModelFamily

CHARACTERS = 4
"""Number of characters per token of English text, a rule of thumb of Google and OpenAI."""
MARK_CHARACTERS = 32
FILM_TOKENS_PER_S, SOUND_TOKENS_PER_S = 300, 32
"""Number of tokens per second of a clip that is sent as a file, and of its sound, as published by Google."""
_TILE = 512
_SHORT_SIDE = 768


@dataclass(frozen=True, slots=True)
class ImageTokenRule:
    """Rule for the tokens of an image in a model family, as text and as a function of its size."""

    words: str
    count: Callable[[int, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTokenCounts:
    """Estimated number of frames, text tokens and image tokens of one question."""

    n_frames: int
    text_tokens: int
    picture_tokens: int


def _build_tile_token_rule(base: int, tile: int) -> ImageTokenRule:
    def count(width: int, height: int) -> int:
        scale = _SHORT_SIDE / min(width, height)
        return base + tile * math.ceil(width * scale / _TILE) * math.ceil(height * scale / _TILE)

    text = f"{base} and {tile} for each tile of 512 pixels, the shorter side at 768"
    return ImageTokenRule(text, count)


def _count_gemini_image_tokens(width: int, height: int) -> int:
    small, tile = 384, 768
    if max(width, height) <= small:
        return 258
    return 258 * math.ceil(width / tile) * math.ceil(height / tile)


_GOOGLE = ImageTokenRule("258 for each tile of 768 pixels", _count_gemini_image_tokens)
_REASONING = _build_tile_token_rule(70, 140)
# Sources: the makers' documentation of vision and of tokens.
_RULES = {
    "openai": _build_tile_token_rule(85, 170),
    "openai-audio": _build_tile_token_rule(85, 170),
    "openai-reasoning": _REASONING,
    "openai-switch": _REASONING,
    "claude": ImageTokenRule("width x height / 750", lambda w, h: math.ceil(w * h / 750)),
    "gemini-plain": _GOOGLE,
    "gemini-flash": _GOOGLE,
    "gemini": ImageTokenRule("1,120 for each picture", lambda _width, _height: 1120),
}
_OTHERWISE = ImageTokenRule(
    "width x height / 784, for want of the family's own", lambda w, h: math.ceil(w * h / 784)
)


def get_image_token_rule(family: ModelFamily) -> ImageTokenRule:
    """Return the rule for the tokens of an image in `family`."""
    resize = family.resize
    if resize is None:
        return _RULES.get(family.name, _OTHERWISE)

    def count(width: int, height: int) -> int:
        wide, high = resize.size(width, height)
        return wide * high // resize.multiple**2

    return ImageTokenRule(f"one for {resize.multiple} x {resize.multiple} pixels", count)


def estimate_request_tokens(
    question: Question, clips: Sequence[Clip], family: ModelFamily
) -> RequestTokenCounts:
    """Estimate the tokens of `question` about `clips`, which are sent as frames."""
    condition, protocol = question.condition, question.instrument.protocol
    rule, marked = get_image_token_rule(family), shows_frame_times(protocol, condition.marks)
    characters = sum(
        map(len, split_prompt_at_clips(get_prompt_text(get_protocol(protocol), condition.prompt)))
    )
    n_frames = pictures = 0
    for number, clip in enumerate(clips, start=1):
        video = clip.facts.video
        # As if the clip had evenly spaced frames.
        rate = video.average_rate or Fraction(1)
        timeline = FrameTimeline.at_rate(rate, n_frames=video.n_frames)
        instants = plan_frames(parse_sampling(condition.sampling), timeline).at_s
        size = compute_scaled_size(
            video.width, video.height, LONGEST_SIDE, most_pixels=condition.max_pixels
        )
        n_frames += len(instants)
        pictures += len(instants) * rule.count(*size)
        if marked:
            characters += sum(len(format_frame_time(at_s, family.times)) for at_s in instants)
        if len(clips) > 1:
            characters += len(format_question_clip_heading(number))
    text = math.ceil(characters / CHARACTERS)
    return RequestTokenCounts(n_frames=n_frames, text_tokens=text, picture_tokens=pictures)


def estimate_max_token_usage(
    request: ReviewRequest, *, family: ModelFamily, max_tokens: int
) -> Usage:
    """Estimate the maximum tokens of the request `request`; its output counts as `max_tokens`."""
    rule, tokens = get_image_token_rule(family), 0
    characters = len(request.system) + len(request.prompt)
    for clip_input in request.inputs:
        tokens += sum(rule.count(frame.width, frame.height) for frame in clip_input.frames)
        characters += MARK_CHARACTERS * len(clip_input.frames)
        seconds = clip_input.clip.facts.video.duration_s
        if clip_input.whole is not None:
            tokens += math.ceil(seconds * FILM_TOKENS_PER_S)
        if clip_input.sound_wav is not None:
            tokens += math.ceil(seconds * SOUND_TOKENS_PER_S)
    return Usage(input_tokens=tokens + math.ceil(characters / CHARACTERS), output_tokens=max_tokens)
