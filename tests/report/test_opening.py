"""The sentence that a review opens with."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from report.reviewed import review_with, trace_text
from synthesise import ClipRecipe, synthesise
from unreel.core.failure import Failure, FailureReason
from unreel.evaluation.opinion import ClipVariantOpinions, Opinion
from unreel.evaluation.review import Review
from unreel.media.perturb import plan_clip_variants
from unreel.report.review.review_result import (
    FILE_ONLY_HEADLINE,
    find_first_onset_us,
    format_review_headline,
    get_reviewer_kind_name,
)

FAKE = trace_text((0, 0, 96, 64), start_s=0.25)
LATER = trace_text((0, 0, 96, 64), start_s=0.75)
SILENCE = "(silent)"
FOUR = (
    "1 of 4 reviewers says this clip looks AI-generated, from 0.25 s; 1 says it looks real; 1 gave an answer that could not be "
    "read; 1 gave no answer (rate limited)."
)


@pytest.fixture(scope="module")
def ball(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("clips") / "ball.mp4"
    file.write_bytes(synthesise(ClipRecipe(n_frames=8)))
    return file


def hear(ball: Path, *said: Mapping[str, str]) -> Review:
    names = ("one", "two", "three", "four")
    texts = dict(zip(names, said, strict=False)) or {"one": {"trace": "REAL"}}
    review = review_with(ball, texts)
    opinions = review.opinions if said else ()
    heard = (_silenced(o) if getattr(o.outcome, "text", "") == SILENCE else o for o in opinions)
    return replace(review, opinions=tuple(heard))


def _silenced(opinion: Opinion) -> Opinion:
    lost = Failure(FailureReason.RATE_LIMITED, "status 429")
    return replace(opinion, outcome=lost, verdict=None)


def traces(*texts: str) -> list[dict[str, str]]:
    return [{"trace": text} for text in texts]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([], FILE_ONLY_HEADLINE),
        (traces(FAKE), "one says this clip looks AI-generated, from 0.25 s."),
        (traces("FAKE"), "one says this clip looks AI-generated."),
        (traces("REAL"), "one says this clip looks real."),
        (traces("hm"), "one gave an answer that could not be read."),
        (traces(SILENCE), "one gave no answer (rate limited)."),
        (traces("Sorry, I cannot assist with this."), "one refused to answer."),
        (traces("I cannot tell whether it is real."), "one gave an answer that could not be read."),
        (traces("Error: 500"), "one gave an answer that could not be read."),
        (
            traces(FAKE, "REAL"),
            "1 of 2 reviewers says this clip looks AI-generated, from 0.25 s; the other says it looks real.",
        ),
        (
            traces("REAL", LATER, FAKE),
            "2 of 3 reviewers say this clip looks AI-generated, from 0.25 s at the earliest; the other says it looks real.",
        ),
        (
            traces(FAKE, "REAL", "REAL"),
            "1 of 3 reviewers says this clip looks AI-generated, from 0.25 s; the other 2 say it looks real.",
        ),
        (traces(FAKE, FAKE), "Both reviewers say this clip looks AI-generated, from 0.25 s."),
        (traces("REAL", "REAL", "REAL"), "All 3 reviewers say this clip looks real."),
        (traces(FAKE, "REAL", "hm", SILENCE), FOUR),
        (traces(SILENCE, SILENCE), "Both reviewers gave no answer (rate limited)."),
        ([{"reality": "<answer>1</answer>"}], "one says this clip looks real."),
        (
            [{"realism": "<answer>2</answer>"}],
            "one rates the realism of this clip as 2 of 5 (poor).",
        ),
        (
            [{"realism": "<answer>2</answer>"}, {"realism": "<answer>4</answer>"}],
            "Both reviewers rate the realism of this clip as 2 of 5 (poor) to 4 of 5 (good).",
        ),
        (
            [{"trace": FAKE, "reality": "<answer>1</answer>"}],
            "one says that this clip looks AI-generated, and also that it looks real.",
        ),
        ([{"trace": "REAL", "realism": "<answer>2</answer>"}], "one says this clip looks real."),
    ],
)
def test_one_sentence_tells_who_calls_it_what(ball, said, told) -> None:
    assert format_review_headline(hear(ball, *said)) == told


def test_models_behind_a_server_are_called_ai_models(ball) -> None:
    two = {"openai/gpt-5": {"trace": FAKE}, "vllm/qwen3-vl": {"trace": "REAL"}}
    assert format_review_headline(review_with(ball, two)) == (
        "1 of 2 AI models says this clip looks AI-generated, from 0.25 s; the other says it looks real."
    )
    one = {"openai/gpt-5": {"trace": FAKE}}
    assert format_review_headline(review_with(ball, one)) == (
        "The AI model openai/gpt-5 says this clip looks AI-generated, from 0.25 s."
    )
    mixed = {"openai/gpt-5": {"trace": "REAL"}, "detector": {"trace": "REAL"}}
    assert (
        format_review_headline(review_with(ball, mixed))
        == "Both reviewers say this clip looks real."
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai/gpt-5", "AI model"),
        ("coin", "fixed rule, no AI model"),
        ("recorded:said", "recorded answers"),
        ("command:detector", "program"),
        ("http:detector", "service"),
        ("my object", "reviewer"),
    ],
)
def test_the_kind_of_a_reviewer_is_named(name, kind) -> None:
    assert get_reviewer_kind_name(name) == kind


def test_the_first_onset_is_the_earliest_that_anybody_names(ball) -> None:
    assert find_first_onset_us(hear(ball, *traces("REAL", LATER, FAKE)).opinions) == 250_000
    assert find_first_onset_us(hear(ball, *traces("REAL", "FAKE")).opinions) is None


def test_a_verdict_that_turns_is_told_as_unsure(ball) -> None:
    review = hear(ball, *traces(FAKE, "REAL"))
    turned = hear(ball, *traces("REAL", "REAL"))
    changed = plan_clip_variants(review.clip)[0]
    trials = (ClipVariantOpinions(variant=changed, opinions=turned.opinions),)
    assert format_review_headline(replace(review, trials=trials)) == (
        "1 of 2 reviewers is unsure (its verdict changes when the clip is changed a little); "
        "the other says it looks real."
    )
