"""Clips with a known truth, and answers to them, for tests of what answers earn."""

import random
from collections.abc import Sequence

from unreel.core.box import Box
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Trace
from unreel.protocols.box_space import BoxSpace
from unreel.protocols.trace import TRACE
from unreel.protocols.trace.ground_truth import TraceTruth
from unreel.training.recipe import AnswerRewardSection
from unreel.training.rewards.reward import AnswerKey
from unreel.training.rewards.reward_settings import (
    AnswerRewardSettings,
    compute_answer_reward_settings,
)

SPACE = BoxSpace("model-input 448x252", 448, 252)
PROMPT = "fine-tuning-no-explanation"
REAL_TEXT = TRACE.wording.teach(TraceTruth(label=Label.REAL, duration_us=1), PROMPT, SPACE)


def draw_truths(n: int, *, seed: int = 0) -> list[TraceTruth]:
    """As many real as generated clips; boxes of 2 to 20 % of the frame and onsets anywhere."""
    rng = random.Random(seed)
    return [_draw(rng, i % 2 == 0) for i in range(n)]


def _draw(rng: random.Random, real: bool) -> TraceTruth:  # noqa: FBT001
    duration_us = rng.randint(2_000_000, 10_000_000)
    if real:
        return TraceTruth(label=Label.REAL, duration_us=duration_us)
    start_us = int(rng.uniform(0, 0.8) * duration_us)
    end_us = min(duration_us, start_us + int(rng.uniform(0.1, 0.5) * duration_us))
    return generated(draw_box(rng), start_us, end_us, duration_us=duration_us)


def draw_box(rng: random.Random) -> Box:
    width, height = rng.uniform(0.15, 0.45), rng.uniform(0.15, 0.45)
    x0, y0 = rng.uniform(0, 1 - width), rng.uniform(0, 1 - height)
    return Box(x0, y0, x0 + width, y0 + height)


def generated(
    box: Box | None, start_us: int, end_us: int, *, duration_us: int = 4_000_000
) -> TraceTruth:
    track = () if box is None else (BoxAt(start_us, box),)
    trace = Trace(span=TimeSpan(start_us, end_us), track=track)
    return TraceTruth(label=Label.GENERATED, duration_us=duration_us, trace=trace)


def settled(truths: Sequence[TraceTruth], **changed: float) -> AnswerRewardSettings:
    return compute_answer_reward_settings(
        AnswerRewardSection(**changed), [(truth,) for truth in truths]
    )


def key(*truths: TraceTruth, settings: AnswerRewardSettings, prompt: str = PROMPT) -> AnswerKey:
    return AnswerKey(protocol="trace", prompt=prompt, space=SPACE, truths=truths, terms=settings)


def perfect(truth: TraceTruth) -> str:
    """The answer that a model is trained to give."""
    return TRACE.wording.teach(truth, PROMPT, SPACE)


def bare(truth: TraceTruth) -> str:
    """The right label and nothing else."""
    return REAL_TEXT if truth.label is Label.REAL else "FAKE. The video is AI-generated."


def fake(box: Box | str | None = None, at_s: float | str | None = None) -> str:
    """A clip called generated, with that evidence."""
    if box is None:
        return "FAKE. The video is AI-generated."
    corners = (
        str([round(corner, 3) for corner in SPACE.corners(box)]) if isinstance(box, Box) else box
    )
    when = "" if at_s is None else f" starting {at_s} seconds"
    return f"FAKE. The video is AI-generated. The unnatural part is at {corners}{when}."
