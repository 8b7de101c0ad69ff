"""Asking again about a changed clip: whose verdict holds."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.asking.asker import Asker
from unreel.core.answer import Reply
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.evaluation.opinion import QUESTIONS_PER_CLIP
from unreel.evaluation.review import (
    Review,
    build_review_questions,
    probe_clip_file,
    review_clip,
    review_clip_variants,
)
from unreel.media.access import open_media_reader
from unreel.reviewers.contract import ClipInput, InputKind, ReviewRequest
from unreel.reviewers.factory import ReviewerWithPrices

RECIPE = ClipRecipe(n_frames=12, width=200, height=120, seed=3)
Says = Callable[[str], str | Failure]


@dataclass
class Weathercock:
    """Says of a clip what its name makes it say."""

    says: Says
    name: str = "weathercock"
    sheets: list[ReviewRequest] = field(default_factory=list)
    wants = frozenset({InputKind.FRAMES})

    def box_space(self, clip_input: ClipInput) -> str:
        return "pixel"

    async def answer(self, request: ReviewRequest) -> Reply | Failure:
        self.sheets.append(request)
        said = self.says(Path(request.inputs[0].clip.location).stem)
        return said if isinstance(said, Failure) else Reply(text=said)

    async def close(self) -> None:
        """Nothing to close."""


@pytest.fixture(scope="module")
def clip(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("clips") / "clip.mp4"
    file.write_bytes(synthesise(RECIPE))
    return file


def asked(file: Path, reviewer: Weathercock, *, protocol: str = "trace", **settings) -> Review:
    inquiry = build_review_questions([protocol], {"sampling": "uniform-2"})
    held = [ReviewerWithPrices(reviewer)]

    async def go(reader) -> Review:
        found = probe_clip_file(file, reader)
        assert not isinstance(found, Failure)
        asker = Asker(reader)
        review = await review_clip(found, held, inquiry=inquiry, asker=asker)
        return await review_clip_variants(
            review, held, questions=inquiry, asker=asker, reader=reader
        )

    with open_media_reader(EnvironmentSettings(**settings), trusted=not settings) as reader:
        return asyncio.run(go(reader))


def test_each_question_is_put_four_times_and_of_four_different_clips(clip) -> None:
    reviewer = Weathercock(lambda _: "REAL")
    review = asked(clip, reviewer)
    assert len(reviewer.sheets) == QUESTIONS_PER_CLIP == 4
    assert len({sheet.inputs[0].clip.id for sheet in reviewer.sheets}) == 4
    (found,) = review.stabilities
    assert found.state == "steady"
    assert review.is_complete
    assert [r.variant.name for r in found.retrials] == ["recompressed", "scaled", "cropped"]


def test_a_verdict_that_turns_is_unsure(clip) -> None:
    review = asked(clip, Weathercock(lambda name: "FAKE" if "cropped" in name else "REAL"))
    (found,) = review.stabilities
    assert found.state == "unsure"
    assert [retrial.flips for retrial in found.retrials] == [False, False, True]
    told = "weathercock, trace: unsure: real as it is, real when recompressed, real when scaled"
    assert str(found) == f"{told}, generated when cropped"
    assert f"stability, {found}" in str(review)


@pytest.mark.parametrize(("moved", "state"), [(3, "steady"), (4, "unsure"), (1, "steady")])
def test_a_score_turns_where_it_moves_by_two_grades(clip, moved, state) -> None:
    def says(name: str) -> str:
        return f"<answer>{moved if 'scaled' in name else 2}</answer>"

    (found,) = asked(clip, Weathercock(says), protocol="realism").stabilities
    assert found.state == state


def test_a_variant_without_an_answer_is_a_row_with_its_reason(clip) -> None:
    lost = Failure(FailureReason.RATE_LIMITED, "status 429")
    review = asked(clip, Weathercock(lambda name: lost if "scaled" in name else "REAL"))
    (found,) = review.stabilities
    assert found.state == "not known"
    assert not review.is_complete
    missing = found.retrials[1].to_json()
    assert missing["flips"] is None
    assert missing["headline"] == "no answer"
    assert "rate-limited: status 429" in missing["problem"]


def test_a_variant_that_cannot_be_made_is_a_row_with_its_reason(clip, monkeypatch) -> None:
    lost = Failure(FailureReason.OUT_OF_TIME, "too slow")
    monkeypatch.setattr("unreel.media.reader.MediaReader.normalise", lambda *_: lost)
    review = asked(clip, Weathercock(lambda _: "REAL"))
    (found,) = review.stabilities
    assert [retrial.flips for retrial in found.retrials] == [None, None, False]
    assert "could not be changed so: out-of-time" in str(found.retrials[0].problem)
    assert not review.is_complete


def test_boxes_are_compared_in_the_clip_itself(clip) -> None:
    """A reviewer that marks the middle of what it is shown marks nearly the same place each time."""

    def middle(name: str) -> str:
        width, height = {"clip+scaled": (100, 60), "clip+cropped": (180, 108)}.get(name, (200, 120))
        corners = [width // 4, height // 4, 3 * width // 4, 3 * height // 4]
        return f"FAKE <coordinates>{corners}</coordinates> <start_time>0.1</start_time>"

    (found,) = asked(clip, Weathercock(middle)).stabilities
    recompressed, scaled, cropped = (retrial.box_overlap for retrial in found.retrials)
    assert recompressed == scaled == 1
    assert cropped is not None
    assert 0.6 < cropped < 1
