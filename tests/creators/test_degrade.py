"""Controls: real clips, changed as people change them, by numbers that can be repeated."""

import asyncio
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.core.clip import ClipFacts
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.contract import ClipBrief, Creator, CreatorInput, GeneratedClip
from unreel.media.reader import MediaReader, run_trusted_task
from unreel.media.sound import ClipSound
from unreel.recipes.validation import validate_recipe_sections
from unreel.testing.creators import CreatorKit, FakeCreatorContext, sample_briefs

READER = MediaReader(run_trusted_task)


def section(**keys: Any) -> CreatorRecipeSection:
    return validate_recipe_sections(
        CreatorRecipeSection, {"name": "control", "kind": "degrade"} | keys
    )


def opened(*, trusted: bool = True, **keys: Any) -> Creator:
    return section(**keys).opener(settings=EnvironmentSettings(), trusted=trusted).open()


@pytest.fixture
def brief(tmp_path: Path) -> ClipBrief:
    return sample_briefs(tmp_path / "real", frozenset({CreatorInput.IMAGE}))[0]


def make(brief: ClipBrief, folder: Path, **keys: Any) -> GeneratedClip | Failure:
    folder.mkdir(exist_ok=True)

    async def once() -> GeneratedClip | Failure:
        creator = opened(**keys)
        try:
            return await creator.make(brief, FakeCreatorContext(folder))
        finally:
            await creator.close()

    return asyncio.run(once())


def content(outcome: GeneratedClip | Failure) -> bytes:
    assert isinstance(outcome, GeneratedClip)
    return outcome.file.read_bytes()


def facts(outcome: GeneratedClip | Failure) -> ClipFacts:
    assert isinstance(outcome, GeneratedClip)
    found = READER.probe(outcome.file)
    assert isinstance(found, ClipFacts)
    return found


class TestRecompressed(CreatorKit):
    free = True

    @pytest.fixture
    def creator(self) -> Creator:
        return opened(way="recompressed", crf=40)


class TestCropped(CreatorKit):
    free = True

    @pytest.fixture
    def creator(self) -> Creator:
        return opened(way="cropped")


def test_strangers_clips_are_changed_in_a_confined_process(
    brief: ClipBrief, tmp_path: Path
) -> None:
    made = make(brief, tmp_path / "a", trusted=False, way="retimed")
    assert facts(made).video.duration_s < 1
    assert content(made) == content(make(brief, tmp_path / "b", way="retimed"))


def test_what_is_cropped_away_is_drawn_by_the_seed_and_the_scene(
    brief: ClipBrief, tmp_path: Path
) -> None:
    drawn = set()
    for number in range(6):
        other = replace(brief, seed=number)
        made = make(other, tmp_path / str(number), way="cropped", kept=0.5)
        assert isinstance(made, GeneratedClip)
        assert made.parameters["width"] == 96
        drawn.add((made.parameters["left"], made.parameters["top"]))
    assert len(drawn) > 3


@pytest.mark.parametrize("speed", ["5/4", "1/2", "3"])
def test_at_another_speed_every_frame_and_the_sound_last_as_much_less(
    brief: ClipBrief, tmp_path: Path, speed: str
) -> None:
    made = make(brief, tmp_path / "a", way="retimed", speed=speed)
    video = facts(made).video
    assert video.n_frames == 12
    assert abs(video.duration_s - 1 / Fraction(speed)) < Fraction(1, 10)
    assert isinstance(made, GeneratedClip)
    sound = READER.sound(made.file)
    assert isinstance(sound, ClipSound)
    assert abs(len(sound.samples) / sound.rate_hz - 1 / Fraction(speed)) < 0.15
    assert made.parameters["speed"] == speed


def test_a_tape_that_runs_twice_as_fast_sounds_an_octave_higher(
    brief: ClipBrief, tmp_path: Path
) -> None:
    import numpy as np

    made = make(brief, tmp_path / "a", way="retimed", speed=2)
    assert isinstance(made, GeneratedClip)
    sound = READER.sound(made.file)
    assert isinstance(sound, ClipSound)
    middle = sound.samples[2000:6000].astype(float)
    loudest = int(np.argmax(np.abs(np.fft.rfft(middle)))) * sound.rate_hz / len(middle)
    assert abs(loudest - 880) < 10


def test_at_another_rate_a_clip_keeps_its_length(brief: ClipBrief, tmp_path: Path) -> None:
    video = facts(make(brief, tmp_path / "a", way="retimed", rate=6)).video
    assert video.n_frames == 6
    assert video.duration_s == 1


@pytest.mark.parametrize(
    "keys",
    [
        {"way": "scaled", "crf": 20},
        {"way": "retimed", "speed": 1},
        {"way": "retimed", "speed": 2, "rate": 12},
        {"way": "scaled", "scale": 2},
        {"way": "shaken"},
    ],
)
def test_numbers_that_say_nothing_about_its_way_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError):
        section(**keys)


def test_a_scene_without_a_real_clip_is_a_failure(brief: ClipBrief, tmp_path: Path) -> None:
    failure = make(replace(brief, source=None), tmp_path / "a", way="scaled")
    assert isinstance(failure, Failure)
    assert failure.reason is FailureReason.NO_BRIEF


SHAPES = [
    ClipRecipe(container="webm", n_frames=6, rate=Fraction(12), tone_hz=300),
    ClipRecipe(container="gif", n_frames=6, rate=Fraction(10)),
    ClipRecipe(n_frames=6, rotation_deg=90, width=128, height=192),
    ClipRecipe(n_frames=1, rate=Fraction(1)),
    ClipRecipe(n_frames=4, instants_s=(Fraction(1), Fraction(2), Fraction(9, 4), Fraction(3))),
    ClipRecipe(n_frames=3, width=66, height=64),
]


@pytest.mark.parametrize("way", ["recompressed", "scaled", "cropped", "retimed"])
@pytest.mark.parametrize(
    "recipe", SHAPES, ids=lambda recipe: f"{recipe.container}{recipe.n_frames}"
)
def test_clips_of_every_shape_become_controls(
    brief: ClipBrief, tmp_path: Path, recipe: ClipRecipe, way: str
) -> None:
    source = tmp_path / f"shape.{recipe.container}"
    source.write_bytes(synthesise(recipe))
    before = READER.probe(source)
    assert isinstance(before, ClipFacts)
    after = facts(make(replace(brief, source=source), tmp_path / "a", way=way))
    ratio = before.video.duration_s / after.video.duration_s
    frame_s = 1 / min(before.video.average_rate, after.video.average_rate)
    if way != "retimed":
        assert abs(before.video.duration_s - after.video.duration_s) <= frame_s
    elif recipe.n_frames > 1:
        assert 1 < ratio < Fraction(3, 2)
    assert bool(after.audio) == bool(before.audio)
