"""Annotators see every clip in one form, in which a frame's number tells its instant."""

import urllib.error
import urllib.request
from fractions import Fraction
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.annotation.browser_copies import (
    ClipCopyRequest,
    build_clip_copy_urls,
    make_browser_copies,
)
from unreel.annotation.campaign import AnnotatorClipCopy
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import MediaError
from unreel.core.failure import Failure
from unreel.core.settings import read_environment_settings
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.media.access import open_media_reader
from unreel.media.encode import move_mp4_index_first

NTSC = Fraction(30000, 1001)
VARIABLE = tuple(Fraction(i * i, 400) for i in range(24))
RECIPES = {
    "plain": ClipRecipe(n_frames=12),
    "late": ClipRecipe(
        n_frames=12, rate=NTSC, instants_s=tuple(Fraction(7, 5) + i / NTSC for i in range(12))
    ),
    "variable": ClipRecipe(n_frames=24, instants_s=VARIABLE),
    "odd": ClipRecipe(n_frames=6, width=181, height=99, container="webm"),
    "turned": ClipRecipe(n_frames=6, rotation_deg=90),
}


@pytest.fixture
def clips(tmp_path: Path) -> dict[str, Path]:
    made = {}
    for name, recipe in RECIPES.items():
        made[name] = tmp_path / f"{name}.bin"
        made[name].write_bytes(synthesise(recipe))
    made["broken"] = tmp_path / "broken.bin"
    made["broken"].write_bytes(b"no clip at all")
    return made


def copy_all(
    clips: dict[str, Path], location: StorageLocation, key: bytes = b"a secret"
) -> dict[str, AnnotatorClipCopy | Failure]:
    wanted = [ClipCopyRequest(name, str(path)) for name, path in clips.items()]
    access = ClipAccessSettings(settings=read_environment_settings())
    made = make_browser_copies(wanted, location=location, access=access, key=key, workers=2)
    found = dict(made)
    assert list(found) == list(clips)
    return found


def test_every_clip_becomes_constant_in_rate_from_zero_on_and_a_broken_one_stops_none(
    clips: dict[str, Path], tmp_path: Path
) -> None:
    place = StorageLocation(str(tmp_path / "clips"))
    found = copy_all(clips, place)
    assert isinstance(found.pop("broken"), Failure)
    with open_media_reader(read_environment_settings(), trusted=False) as reader:
        for name, copy in found.items():
            assert isinstance(copy, AnnotatorClipCopy), name
            facts = reader.probe(place.path / copy.location)
            assert not isinstance(facts, Failure)
            assert not facts.video.variable_rate, name
            assert facts.video.first_at_s == 0, name
            assert facts.video.codec == "h264"
            assert facts.video.pixel_format == "yuv420p"
            assert (facts.video.n_frames, facts.video.average_rate) == (copy.n_frames, copy.rate)
    late = found["late"]
    assert isinstance(late, AnnotatorClipCopy)
    assert (late.rate, late.n_frames) == (NTSC, 12)
    turned = found["turned"]
    assert isinstance(turned, AnnotatorClipCopy)
    assert (turned.width, turned.height) == (192, 128)


def test_names_tell_nothing_of_the_source_and_a_second_run_makes_nothing(
    clips: dict[str, Path], tmp_path: Path
) -> None:
    place = StorageLocation(str(tmp_path / "clips"))
    first = copy_all(clips, place)
    stamps = {name: (place.path / name).stat().st_mtime_ns for name in place.names()}
    assert copy_all(clips, place) == first
    assert {name: (place.path / name).stat().st_mtime_ns for name in place.names()} == stamps
    for word in (*RECIPES, "broken", ".bin"):
        assert not any(word in name for name in place.names())
    for path in clips.values():
        assert not any(compute_clip_id(path)[:8] in name for name in place.names())
    other = copy_all({"plain": clips["plain"]}, place, key=b"another secret")["plain"]
    assert isinstance(other, AnnotatorClipCopy)
    assert other.location not in stamps, "who has the original and no key cannot tell the name"


def test_the_index_lies_before_the_pictures(clips: dict[str, Path], tmp_path: Path) -> None:
    place = StorageLocation(str(tmp_path / "clips"))
    (copy,) = copy_all({"plain": clips["plain"]}, place).values()
    assert isinstance(copy, AnnotatorClipCopy)
    data = place.read(copy.location)
    assert data.index(b"moov") < data.index(b"mdat")
    assert move_mp4_index_first(data) == data


@pytest.mark.parametrize("junk", [b"", b"no mp4", b"\0\0\0\x08mdat", b"\xff\xff\xff\xffmoov"])
def test_what_is_no_mp4_is_refused(junk: bytes) -> None:
    with pytest.raises(MediaError):
        move_mp4_index_first(junk)


def test_urls_are_label_studios_own_or_signed_by_the_store(tmp_path: Path) -> None:
    (own,) = build_clip_copy_urls(StorageLocation(str(tmp_path)), ["ab-cd.mp4"])
    assert own == "/data/local-files/?d=clips/ab-cd.mp4"
    store = StorageLocation(
        "s3://bucket/copies",
        {
            "aws_endpoint": "http://127.0.0.1:1",
            "aws_access_key_id": "k",
            "aws_secret_access_key": "s",
            "aws_region": "us-east-1",
            "allow_http": "true",
        },
    )
    (signed,) = build_clip_copy_urls(store, ["ab-cd.mp4"])
    assert "/copies/ab-cd.mp4?" in signed
    assert "X-Amz-Signature=" in signed
    assert "X-Amz-Expires=604800" in signed


def test_a_browser_fetches_parts_of_a_copy_in_a_store_by_its_link_and_nobody_without(
    clips: dict[str, Path], s3: StorageLocation
) -> None:
    place = s3 / "copies"
    made = copy_all({"plain": clips["plain"]}, place)["plain"]
    assert isinstance(made, AnnotatorClipCopy)
    assert copy_all({"plain": clips["plain"]}, place)["plain"] == made
    (link,) = build_clip_copy_urls(place, [made.location])
    part = urllib.request.Request(link, headers={"Range": "bytes=4-11"})
    with urllib.request.urlopen(part, timeout=30) as reply:
        assert reply.status == 206
        assert reply.read() == place.read(made.location)[4:12]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(link.replace(made.location, f"{made.location}.json"), timeout=30)
