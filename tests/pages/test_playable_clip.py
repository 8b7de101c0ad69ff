"""A clip as a page shows it: inside the page, beside it, or as a copy that browsers play."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.core.clip import Clip
from unreel.core.content_ids import compute_clip_id
from unreel.core.settings import EnvironmentSettings
from unreel.media.access import open_media_reader
from unreel.media.reader import MediaReader
from unreel.pages.playable_clip import PlayerVideo, prepare_player_video

BALL = ClipRecipe(n_frames=12, seed=3)


@pytest.fixture(scope="module")
def reader() -> Iterator[MediaReader]:
    with open_media_reader(EnvironmentSettings(), trusted=True) as opened:
        yield opened


def prepare(file: Path, out: Path, reader: MediaReader, **limits: int) -> PlayerVideo:
    clip = Clip(id=compute_clip_id(file), location=str(file), facts=reader.probe(file))
    return prepare_player_video(clip, out, reader=reader, **limits)


def test_a_clip_above_the_limit_lies_beside_the_page(reader, tmp_path) -> None:
    file, out = tmp_path / "ball.mp4", tmp_path / "page"
    file.write_bytes(synthesise(BALL))
    out.mkdir()
    inside = prepare(file, out, reader)
    assert inside.src.startswith("data:video/mp4;base64,")
    assert list(out.iterdir()) == []
    beside = prepare(file, out, reader, inline_bytes=100)
    assert beside.src == "evidence-clip.mp4"
    assert (out / "evidence-clip.mp4").read_bytes() == file.read_bytes()
    assert not beside.is_copy


@pytest.mark.parametrize(
    ("container", "copied"), [("mp4", False), ("webm", False), ("mkv", True), ("gif", True)]
)
def test_only_what_browsers_cannot_play_is_copied(reader, tmp_path, container, copied) -> None:
    file = tmp_path / f"clip.{container}"
    file.write_bytes(synthesise(replace(BALL, container=container)))
    footage = prepare(file, tmp_path, reader)
    assert footage.is_copy is copied
    assert (footage.width, footage.height) == (192, 128)
