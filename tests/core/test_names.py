"""Ids and names that strangers wrote."""

import pytest

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError, UnreadableSourceError
from unreel.core.safe_names import (
    get_safe_suffix,
    make_safe_file_name,
    read_clip_id,
    require_relative_path,
)

GOOD = digest("a clip")
BAD_IDS = [
    "",
    "../../victim/holiday",
    "/etc/passwd",
    GOOD.upper(),
    GOOD[:-1],
    GOOD + "0",
    GOOD + "\n",
    "\n" + GOOD,
    GOOD[:-1] + "/",
    GOOD[:-1] + "\0",
    GOOD[:-1] + "٣",  # a digit, but not one of ours
    GOOD[:62] + "..",
    "\ud800" * 64,
    "\x1b]0;owned\x07",
    "x" * 100_000,
    GOOD.encode(),
    int(GOOD, 16),
    None,
    [GOOD],
    float("nan"),
    True,
]


@pytest.mark.parametrize("text", BAD_IDS, ids=lambda text: ascii(text)[:24])
def test_what_is_no_id_is_refused_with_a_next_step(text: object) -> None:
    with pytest.raises(UnreadableSourceError) as refused:
        read_clip_id(text, "run/clips.lance")
    told = str(refused.value)
    assert told.startswith("run/clips.lance: ")
    assert told.endswith("make it again")
    assert told.isprintable()
    assert len(told) < 300


def test_an_id_is_taken_as_it_is() -> None:
    assert read_clip_id(GOOD, "run") == GOOD


@pytest.mark.parametrize(
    "name",
    ["", "/", "/a", "a/", "..", ".", "../a", "a/../b", "a/..", "./a", "a//b", "a\0b", "a/./b"],
)
def test_a_name_that_leaves_its_folder_is_refused(name: str) -> None:
    with pytest.raises(InvalidValueError, match="inside its folder"):
        require_relative_path(name)


@pytest.mark.parametrize("name", ["a", "a/b.mp4", "...", "a..b", "..a/b", "a b\nc", "~", "-rf"])
def test_a_name_that_stays_is_taken_as_it_is(name: str) -> None:
    assert require_relative_path(name) == name


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("holiday", "holiday"),
        ("my clip/../x", "my-clip-..-x"),
        ("..", "unnamed"),
        (".", "unnamed"),
        ("", "unnamed"),
        ("../../etc", "-..-etc"),
        (".hidden", "hidden"),
        ("a\0b\nc\x1bd", "a-b-c-d"),
        ("\ud800", "-"),
        ("海辺", "海辺"),
        ("a" * 300, "a" * 80),
        ("海" * 100, "海" * 26),
    ],
)
def test_any_text_becomes_one_plain_name(text: str, plain: str) -> None:
    assert make_safe_file_name(text) == plain
    assert require_relative_path(make_safe_file_name(text)) == plain


@pytest.mark.parametrize(
    ("location", "suffix"),
    [
        ("a/b.MP4", ".mp4"),
        ("s3://bucket/clip.webm", ".webm"),
        ("https://host/clip.mp4?token=secret", ""),
        ("clip", ""),
        ("clip.", ""),
        (".mp4", ""),
        ("clip.mp4\n", ""),
        ("clip.\x1b[31m", ""),
        ("clip." + "m" * 300, ""),
        ("clip.mp4 .exe", ".exe"),
        ("clip.\uff4d\uff50\uff14", ""),
    ],
)
def test_only_a_plain_ending_is_kept(location: str, suffix: str) -> None:
    assert get_safe_suffix(location) == suffix
