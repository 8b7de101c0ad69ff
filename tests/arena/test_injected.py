"""Clean clips with a known trace as a creator of a season, and the same clips without it as its control."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from synthesise import ClipRecipe, synthesise
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.core.trace import Category, Trace
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.contract import ClipBrief, ClipClass, Creator, CreatorInput, GeneratedClip
from unreel.recipes.validation import validate_recipe_sections
from unreel.testing.creators import CreatorKit, FakeCreatorContext, sample_briefs


def section(kind: str = "inject", **keys: Any) -> CreatorRecipeSection:
    return validate_recipe_sections(
        CreatorRecipeSection, {"name": "known traces", "kind": kind} | keys
    )


def opened(told: CreatorRecipeSection) -> Creator:
    return told.opener(settings=EnvironmentSettings(), trusted=True).open()


@pytest.fixture
def brief(tmp_path: Path) -> ClipBrief:
    return sample_briefs(tmp_path / "real", frozenset({CreatorInput.IMAGE}))[0]


def make(told: CreatorRecipeSection, brief: ClipBrief, folder: Path) -> GeneratedClip | Failure:
    folder.mkdir(exist_ok=True)

    async def once() -> GeneratedClip | Failure:
        creator = opened(told)
        try:
            return await creator.make(brief, FakeCreatorContext(folder))
        finally:
            await creator.close()

    return asyncio.run(once())


class TestInjected(CreatorKit):
    free = True

    @pytest.fixture
    def creator(self) -> Creator:
        return opened(section(categories=["sudden-blurring"], strength=1))


class TestEncoded(CreatorKit):
    free = True

    @pytest.fixture
    def creator(self) -> Creator:
        return opened(section("encoded"))


def test_its_clips_count_as_generated_and_those_without_a_trace_as_real() -> None:
    assert section().opener(settings=EnvironmentSettings()).side is ClipClass.GENERATED
    assert section("encoded").opener(settings=EnvironmentSettings()).side is ClipClass.CONTROL


def test_the_truth_about_a_trace_goes_with_its_clip(brief: ClipBrief, tmp_path: Path) -> None:
    made = make(section(categories=["sudden-blurring"], strength=1), brief, tmp_path / "a")
    assert isinstance(made, GeneratedClip)
    (trace,) = TypeAdapter(tuple[Trace, ...]).validate_json(made.traces)
    assert trace.categories == {Category.SUDDEN_BLURRING}
    assert trace.track
    assert trace.explanation
    assert made.parameters["category"] == "sudden-blurring"


def test_without_a_trace_nothing_is_said_to_be_wrong(brief: ClipBrief, tmp_path: Path) -> None:
    made = make(section("encoded"), brief, tmp_path / "a")
    assert isinstance(made, GeneratedClip)
    assert made.traces == ""


def test_what_is_injected_is_drawn_by_the_seed(brief: ClipBrief, tmp_path: Path) -> None:
    told = section(strength=1, categories=["sudden-blurring", "object-distortion"])
    drawn = set()
    for seed in range(4):
        made = make(told, replace(brief, seed=seed), tmp_path / str(seed))
        assert isinstance(made, GeneratedClip)
        drawn.add(json.loads(made.traces)[0]["explanation"] + str(made.parameters["category"]))
    assert len(drawn) > 1


def test_a_clip_in_which_nothing_can_go_wrong_is_a_failure_that_says_why(
    brief: ClipBrief, tmp_path: Path
) -> None:
    tiny = tmp_path / "tiny.mp4"
    tiny.write_bytes(synthesise(ClipRecipe(n_frames=2)))
    failure = make(section(), replace(brief, source=tiny), tmp_path / "a")
    assert isinstance(failure, Failure)
    assert failure.reason is FailureReason.UNFIT
    assert "can be put into this clip" in failure.detail


def test_what_has_no_known_look_is_not_injected() -> None:
    with pytest.raises(InvalidSettingError, match="other"):
        section(categories=["other"])
