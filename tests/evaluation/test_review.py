"""Asking reviewers about one clip, without an engine and without a table."""

import asyncio
import json
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.asking.asker import Asker
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import Label
from unreel.core.settings import EnvironmentSettings
from unreel.core.verdict import RealismVerdict, TraceVerdict, Unparsed
from unreel.evaluation.review import (
    Review,
    build_review_questions,
    build_reviewer_factories,
    probe_clip_file,
    review_clip,
)
from unreel.media.access import open_media_reader
from unreel.reviewers.factory import ReviewerPool

SETTINGS = EnvironmentSettings()
FAKE = (
    "FAKE <coordinates>[48, 32, 96, 64]</coordinates> <start_time>0.5</start_time> "
    "<explanation>it bends</explanation>"
)


@pytest.fixture(scope="module")
def clip_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "ball.mp4"
    path.write_bytes(synthesise(ClipRecipe(n_frames=24)))
    return path


def ask(file: Path, models, *, protocols=("trace",), heard=None, **files) -> Review:
    inquiry = build_review_questions(protocols, {})
    openers = build_reviewer_factories(models, inquiry, settings=SETTINGS, **files)

    async def go(reader) -> Review:
        clip = probe_clip_file(file, reader)
        assert not isinstance(clip, Failure)
        async with ReviewerPool() as pool:
            return await review_clip(
                clip,
                [pool.open(opener) for opener in openers],
                inquiry=inquiry,
                asker=Asker(reader),
                on_opinion=[].append if heard is None else heard.append,
            )

    with open_media_reader(SETTINGS, trusted=True) as reader:
        return asyncio.run(go(reader))


def record(folder: Path, *rows: dict) -> Path:
    path = folder / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_an_answer_is_read_with_the_space_of_its_reviewer(clip_file, tmp_path) -> None:
    recorded = record(tmp_path, {"clip": "ball.mp4", "text": FAKE})
    review = ask(clip_file, ["recorded"], recorded=recorded)
    (opinion,) = review.opinions
    verdict = opinion.verdict
    assert isinstance(verdict, TraceVerdict)
    assert verdict.label is Label.GENERATED
    assert verdict.start_us == 500_000
    assert (verdict.box.x0, verdict.box.y0, verdict.box.x1, verdict.box.y1) == (
        0.25,
        0.25,
        0.5,
        0.5,
    )
    assert review.is_complete


def test_the_key_is_the_one_of_a_run(clip_file, tmp_path) -> None:
    """A recorded answer under the key that `unreel eval` would ask with is found."""
    first = ask(clip_file, ["recorded"], recorded=record(tmp_path, {"clip": "x", "text": ""}))
    (missing,) = first.opinions
    assert isinstance(missing.outcome, Failure)
    assert missing.outcome.reason is FailureReason.NOT_RECORDED
    again = record(tmp_path, {"question": missing.key, "text": "REAL"})
    (found,) = ask(clip_file, ["recorded"], recorded=again).opinions
    assert found.verdict.label is Label.REAL


def test_nonsense_is_no_verdict(clip_file, tmp_path) -> None:
    recorded = record(tmp_path, {"clip": "ball.mp4", "text": "zq zq zq"})
    review = ask(clip_file, ["recorded"], protocols=("trace", "realism"), recorded=recorded)
    trace, realism = review.opinions
    assert isinstance(trace.verdict.label, Unparsed)
    assert isinstance(realism.verdict, RealismVerdict)
    assert isinstance(realism.verdict.score, Unparsed)
    assert not trace.is_readable
    assert not realism.is_readable
    assert not review.is_complete


def test_every_reviewer_is_asked_every_question_and_heard_at_once(clip_file) -> None:
    heard: list = []
    models = ["coin", "always-real", "coin"]
    review = ask(clip_file, models, protocols=("trace", "realism"), heard=heard)
    asked = [(one.question.instrument.protocol, one.reviewer) for one in review.opinions]
    assert asked == [
        ("trace", "coin"),
        ("trace", "always-real"),
        ("realism", "coin"),
        ("realism", "always-real"),
    ]
    assert len(heard) == 4


def test_cost_is_known_only_with_tokens_and_a_price(clip_file, tmp_path) -> None:
    row = {"clip": "ball.mp4", "text": "REAL", "input_tokens": 1000, "output_tokens": 10}
    (opinion,) = ask(clip_file, ["recorded"], recorded=record(tmp_path, row)).opinions
    assert opinion.outcome.usage.input_tokens == 1000
    assert opinion.cost_usd is None
