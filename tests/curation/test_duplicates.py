import io
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from footage import film, write_clip
from unreel.core.errors import InvalidValueError
from unreel.media.decode import Rgb
from unreel.media.fingerprint import (
    BorderWidths,
    ClipFingerprint,
    InMemoryFingerprints,
    compute_clip_fingerprint,
    find_frame_borders,
)
from unreel.media.messages import MAX_PIXELS
from unreel.media.near_duplicates import find_near_duplicates
from unreel.media.scan import scan_clip
from unreel.stats.clusters import group_connected_names

pytest.importorskip("pdqhash", reason="needs the extra `curate`")

Change = Callable[[Rgb, int], Rgb]


def printed(data: bytes) -> ClipFingerprint:
    found = scan_clip(io.BytesIO(data), max_pixels=MAX_PIXELS)
    return compute_clip_fingerprint(found, find_frame_borders(found.picked))


def match(first: ClipFingerprint, second: ClipFingerprint) -> bool:
    return bool(find_near_duplicates(InMemoryFingerprints([("first", first), ("second", second)])))


def scaled(picture: Rgb, _number: int) -> Rgb:
    height, width, _ = picture.shape
    small = Image.fromarray(picture).resize((width * 5 // 8, height * 5 // 8))
    return np.asarray(small)


def cropped(picture: Rgb, number: int) -> Rgb:
    """Five per cent off: all round, half of it all round, one side, or a corner."""
    height, width, _ = picture.shape
    part = 0.025 if number % 4 == 1 else 0.05
    across, down = round(part * width), round(part * height)
    match number % 4:
        case 2:
            return picture[:, across:]
        case 3:
            return picture[:-down, across:]
        case _:
            return picture[down:-down, across:-across]


def stamped(picture: Rgb, number: int) -> Rgb:
    """A white line of text at the bottom, or a logo in a corner."""
    image = Image.fromarray(picture)
    pen = ImageDraw.Draw(image)
    width, height = image.size
    if number % 2:
        font = ImageFont.load_default(max(10, height // 12))
        pen.text((width * 0.55, height * 0.86), "CHANNEL 5", fill=(255, 255, 255), font=font)
    else:
        box = (width * 0.03, height * 0.04, width * 0.17, height * 0.15)
        pen.rectangle(box, fill=(210, 30, 40))
    return np.asarray(image)


def boxed(picture: Rgb, _number: int) -> Rgb:
    return np.pad(picture, ((24, 24), (0, 0), (0, 0)))


CHANGES: dict[str, tuple[Change, int]] = {
    "re-encoded": (lambda picture, _number: picture, 36),
    "scaled": (scaled, 26),
    "cropped": (cropped, 26),
    "stamped": (stamped, 26),
}


def copies(pictures: list[Rgb], number: int) -> Iterator[tuple[str, bytes]]:
    for kind, (change, crf) in CHANGES.items():
        yield kind, write_clip([change(picture, number) for picture in pictures], crf=crf)


def recall_and_precision(clips: list[list[Rgb]]) -> tuple[dict[str, float], float]:
    """Recall of each kind of copy, and the share of right ones among all pairs that match.

    A pair is right when both are of one clip: two clips of one scene count as wrong.
    """
    prints = [(f"{number}/original", printed(write_clip(c))) for number, c in enumerate(clips)]
    for number, clip in enumerate(clips):
        prints += [(f"{number}/{kind}", printed(data)) for kind, data in copies(clip, number)]
    found = {
        (match.first.partition("/")[::2], match.second.partition("/")[::2])
        for match in find_near_duplicates(InMemoryFingerprints(prints))
    }
    right = [(one, other) for one, other in found if one[0] == other[0]]
    caught = {(one[0], other[1]) for one, other in right if one[1] == "original"}
    recall = {
        kind: sum((str(number), kind) in caught for number in range(len(clips))) / len(clips)
        for kind in CHANGES
    }
    return recall, len(right) / len(found)


def test_changed_copies_of_synthesised_clips_match_and_nothing_else_does() -> None:
    clips = [film(seed, n_frames=8) for seed in range(20)]
    recall, precision = recall_and_precision(clips)
    assert min(recall.values()) >= 0.95, recall
    assert precision >= 0.99


def test_a_letterboxed_copy_matches_once_its_borders_are_known() -> None:
    clip = film(3, n_frames=10)
    plain = printed(write_clip(clip))
    data = write_clip([boxed(picture, 0) for picture in clip])
    found = scan_clip(io.BytesIO(data), max_pixels=MAX_PIXELS)
    assert match(plain, compute_clip_fingerprint(found, find_frame_borders(found.picked)))
    assert not match(plain, compute_clip_fingerprint(found, BorderWidths()))


def test_a_fingerprint_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="Scan the clip again"):
        ClipFingerprint(sketch=b"", hashes=b"")


def test_groups_are_joined_through_others_and_led_by_the_first_named() -> None:
    names = ["e", "d", "c", "b", "a"]
    assert group_connected_names(names, [("a", "b"), ("b", "c"), ("e", "d")]) == [
        ["e", "d"],
        ["c", "b", "a"],
    ]


def test_a_new_batch_is_compared_with_the_known_and_with_itself_alone() -> None:
    clips = [
        printed(write_clip(film(seed, n_frames=4), crf=crf))
        for seed, crf in [(1, 20), (1, 34), (2, 20), (2, 34), (1, 28)]
    ]
    prints = InMemoryFingerprints(list(zip("abcde", clips, strict=True)))
    fresh = [(match.first, match.second) for match in find_near_duplicates(prints, known=3)]
    assert sorted(fresh) == [("a", "e"), ("b", "e"), ("c", "d")]
    assert find_near_duplicates(prints, known=5) == []
