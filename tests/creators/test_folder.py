"""Clips named after their scenes: found, copied, and never fetched from elsewhere."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tries
from hypothesis import strategies as st

from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.contract import ClipBrief, Creator, CreatorInput, GeneratedClip
from unreel.testing.creators import SCENES, CreatorKit, FakeCreatorContext

BRIEF = ClipBrief(
    id="beach", setting=CreatorInput.TEXT, text="", width=64, height=48, duration_us=1, seed=0
)


def opened(folder: Path, *asked: str, fetch_mb: int = 1) -> Creator:
    keys = {"name": "Wan", "kind": "folder", "folder": str(folder), "settings": asked or ("text",)}
    section = CreatorRecipeSection.model_validate(keys)
    return section.opener(settings=EnvironmentSettings(fetch_mb=fetch_mb)).open()


def make(creator: Creator, tmp_path: Path, brief: ClipBrief = BRIEF) -> GeneratedClip | Failure:
    desk = tmp_path / "desk"
    desk.mkdir(exist_ok=True)
    return asyncio.run(creator.make(brief, FakeCreatorContext(desk)))


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    folder = tmp_path / "clips"
    folder.mkdir()
    return folder


class TestFolder(CreatorKit):
    @pytest.fixture
    def creator(self, clips: Path) -> Creator:
        for scene in SCENES:
            (clips / f"{scene}.webm").write_bytes(scene.encode())
        return opened(clips)


@pytest.mark.parametrize("name", ["beach.mp4", "beach.MP4", "beach.gif", "beach-text.mov"])
def test_a_clip_is_found_by_its_scene(clips: Path, tmp_path: Path, name: str) -> None:
    (clips / name).write_bytes(b"sea")
    made = make(opened(clips), tmp_path)
    assert isinstance(made, GeneratedClip)
    assert made.file.read_bytes() == b"sea"
    assert made.parameters["file"] == name


def test_a_scene_may_lie_in_a_folder_of_its_own(clips: Path, tmp_path: Path) -> None:
    (clips / "sea").mkdir()
    (clips / "sea" / "1.mp4").write_bytes(b"sea")
    assert isinstance(make(opened(clips), tmp_path, replace(BRIEF, id="sea/1")), GeneratedClip)


def test_a_missing_clip_is_told_by_the_names_that_were_looked_for(
    clips: Path, tmp_path: Path
) -> None:
    failure = make(opened(clips), tmp_path)
    assert isinstance(failure, Failure)
    assert "beach-text.mp4" in failure.detail
    assert "beach.mp4" in failure.detail
    assert str(clips) not in failure.detail


def test_two_clips_of_one_scene_are_not_chosen_between(clips: Path, tmp_path: Path) -> None:
    for name in ("beach.mp4", "beach-text.mp4"):
        (clips / name).write_bytes(b"sea")
    failure = make(opened(clips), tmp_path)
    assert isinstance(failure, Failure)
    assert "beach-text.mp4" in failure.detail


def test_one_file_does_not_stand_for_two_settings(clips: Path, tmp_path: Path) -> None:
    (clips / "beach.mp4").write_bytes(b"sea")
    assert isinstance(make(opened(clips, "text", "image"), tmp_path), Failure)
    (clips / "beach-text.mp4").write_bytes(b"text")
    made = make(opened(clips, "text", "image"), tmp_path)
    assert isinstance(made, GeneratedClip)
    assert made.file.read_bytes() == b"text"


def test_links_are_refused_on_the_way_and_at_its_end(clips: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.mp4"
    secret.write_bytes(b"secret")
    (clips / "beach.mp4").symlink_to(secret)
    (clips / "up").symlink_to(tmp_path)
    creator = opened(clips)
    assert isinstance(make(creator, tmp_path), Failure)
    assert isinstance(make(creator, tmp_path, replace(BRIEF, id="up/secret")), Failure)
    assert isinstance(make(creator, tmp_path, replace(BRIEF, id="../secret")), Failure)


def test_a_file_that_is_too_large_leaves_nothing_behind(clips: Path, tmp_path: Path) -> None:
    with (clips / "beach.mp4").open("wb") as file:
        file.truncate(3 << 20)
    failure = make(opened(clips), tmp_path)
    assert isinstance(failure, Failure)
    assert failure.reason is FailureReason.TOO_LARGE
    assert list((tmp_path / "desk").iterdir()) == []


@tries(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(scene=st.text(max_size=40))
def test_no_name_of_a_scene_leads_out_of_the_folder(
    clips: Path, tmp_path: Path, scene: str
) -> None:
    (tmp_path / "outside.mp4").write_bytes(b"outside")
    outcome = make(opened(clips), tmp_path, replace(BRIEF, id=f"{scene}/../../outside"))
    assert isinstance(outcome, Failure)
