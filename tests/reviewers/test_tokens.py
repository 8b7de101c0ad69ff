"""How many tokens a question will take, before it is put."""

from dataclasses import replace
from fractions import Fraction

import pytest

from facts import FACTS
from unreel.core.clip import Clip
from unreel.core.question import Condition, Question
from unreel.protocols.protocol import get_protocol
from unreel.reviewers.endpoint.model_families import match_model_family
from unreel.reviewers.endpoint.token_estimate import estimate_request_tokens, get_image_token_rule

VIDEO = replace(
    FACTS.video,
    width=1920,
    height=1080,
    n_frames=120,
    average_rate=Fraction(24),
    duration_s=Fraction(5),
)
CLIP = Clip(id="a" * 64, location="a.mp4", facts=replace(FACTS, video=VIDEO))


def question(instrument: str = "reality", **condition: object) -> Question:
    asked = get_protocol(instrument).instrument
    return Question(subject=CLIP.id, instrument=asked, condition=Condition(**condition))


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o", 85 + 170 * 6),
        ("gpt-5", 70 + 140 * 6),
        ("claude-sonnet-4", 787),
        ("gemini-2.5-flash", 258 * 2),
        ("gemini-3-pro", 1120),
        ("qwen3-vl-8b", 32 * 18),
        ("qwen2.5-vl-7b", 37 * 21),
        ("nobody-knows", 753),
    ],
)
def test_a_picture_is_counted_as_its_family_does(model: str, tokens: int) -> None:
    assert get_image_token_rule(match_model_family(model)).count(1024, 576) == tokens


def test_a_question_is_its_text_and_the_frames_in_the_size_shown() -> None:
    claude = match_model_family("claude-sonnet-4")
    load = estimate_request_tokens(question(), [CLIP], claude)
    prompt = get_protocol("reality").prompt("paper").text
    assert load.n_frames == 8
    assert load.picture_tokens == 8 * 787  # 1024 x 576 each
    assert 0 < load.text_tokens <= len(prompt) / 4 + 1
    fewer = estimate_request_tokens(question(sampling="fps-1", max_pixels=50176), [CLIP], claude)
    assert fewer.n_frames == 5
    assert fewer.picture_tokens < 5 * 70


def test_a_short_clip_shows_the_frames_it_has_and_a_pair_both_clips() -> None:
    short = replace(CLIP, facts=replace(CLIP.facts, video=replace(VIDEO, n_frames=3)))
    family = match_model_family("gpt-5")
    assert estimate_request_tokens(question(), [short], family).n_frames == 3
    assert estimate_request_tokens(question("preference"), [CLIP, short], family).n_frames == 11
