"""Every reviewer of ours keeps the contract."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import pytest

from unreel.core.answer import Reply
from unreel.core.clip import Generated, Origin, Real
from unreel.core.retry import RetryPolicy
from unreel.reviewers.baselines.constant import (
    CoinReviewer,
    ConstantLabelReviewer,
    build_always_generated_reviewer,
    build_always_real_reviewer,
)
from unreel.reviewers.baselines.fitting import BaselineTrainingClip, FittedBaselineReviewer
from unreel.reviewers.baselines.metadata import fit_metadata_baseline
from unreel.reviewers.baselines.motion import fit_motion_baseline
from unreel.reviewers.contract import Reviewer
from unreel.reviewers.endpoint.reviewer import EndpointLimits, EndpointReviewer
from unreel.reviewers.recorded import RecordedReviewer
from unreel.testing.reviewers import ReviewerKit, sample_clip_input, sample_requests

PATIENCE = RetryPolicy(deadline_s=1, attempt_s=0.4, backoff_s=0.02, outage_s=0.2)
SECRET = "sk-4f0c9e-never-shown"


def _specimens() -> list[BaselineTrainingClip]:
    origins: list[Origin] = [Real(), Real(), Real(), Generated("a"), Generated("b")]
    found = []
    for number, origin in enumerate(origins * 3):
        exhibit = sample_clip_input(f"sample-{number}")
        facts = exhibit.clip.facts
        video = replace(facts.video, average_rate=Fraction(24 + number % 5))
        clip = replace(exhibit.clip, facts=replace(facts, video=video))
        found.append(BaselineTrainingClip(clip_input=replace(exhibit, clip=clip), origin=origin))
    return found


@cache
def _fitted(fit: Callable[..., FittedBaselineReviewer]) -> FittedBaselineReviewer:
    return fit(_specimens(), seed=1)


class TestCoin(ReviewerKit):
    @pytest.fixture
    def reviewer(self) -> Reviewer:
        return CoinReviewer(seed=3)


class TestAlwaysReal(ReviewerKit):
    @pytest.fixture
    def reviewer(self) -> ConstantLabelReviewer:
        return build_always_real_reviewer()


class TestAlwaysGenerated(ReviewerKit):
    @pytest.fixture
    def reviewer(self) -> ConstantLabelReviewer:
        return build_always_generated_reviewer()


class TestRecorded(ReviewerKit):
    @pytest.fixture
    def reviewer(self) -> Reviewer:
        first, second, *_ = sample_requests()
        outcomes = {first.key: Reply(text="REAL"), second.inputs[0].clip.id: Reply(text="3")}
        return RecordedReviewer("recorded/sample", outcomes)


class TestMetadata(ReviewerKit):
    @pytest.fixture
    def reviewer(self) -> Reviewer:
        return _fitted(fit_metadata_baseline)


class TestMotion(ReviewerKit):
    @pytest.fixture
    def reviewer(self) -> Reviewer:
        return _fitted(fit_motion_baseline)


class TestEndpoint(ReviewerKit):
    secrets: ClassVar = (SECRET,)

    @pytest.fixture
    def reviewer(self, fault_run: Any) -> Reviewer:
        limits = EndpointLimits(patience=PATIENCE)
        return EndpointReviewer(fault_run("500", 0).model, api_key=SECRET, limits=limits)


@pytest.mark.parametrize("fault", ["401", "echo", "cut"])
class TestFailingEndpoint(ReviewerKit):
    secrets: ClassVar = (SECRET,)
    repeatable = False  # which questions meet the open breaker depends on time

    @pytest.fixture
    def reviewer(self, fault: str, fault_run: Any) -> Reviewer:
        limits = EndpointLimits(patience=PATIENCE)
        return EndpointReviewer(fault_run(fault, 100).model, api_key=SECRET, limits=limits)
