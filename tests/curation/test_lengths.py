from collections import Counter
from fractions import Fraction

import pytest

from curation.matched import match_lengths
from scenes.ball import read_index
from synthesise import ClipRecipe, synthesise
from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings
from unreel.curation.freeze.media import read_first_frame
from unreel.media.access import open_media_reader

WANTED = [Fraction(n, 24) for n in (48, 120, 120, 121, 97, 240)]


def named(*lengths_s: int) -> dict[str, Fraction]:
    return {f"r{place}": Fraction(length) for place, length in enumerate(lengths_s)}


def test_real_clips_get_exactly_the_lengths_of_the_generated_ones() -> None:
    trims = match_lengths(named(10, 11, 12, 13, 14, 15), WANTED, seed=0)
    assert Counter(trims.values()) == Counter(WANTED)


def test_fewer_real_clips_get_lengths_from_the_middle_of_both_halves() -> None:
    trims = match_lengths(named(20, 21), WANTED, seed=0)
    assert sorted(trims.values()) == [sorted(WANTED)[1], sorted(WANTED)[4]]


def test_a_clip_that_is_too_short_is_told_and_not_stretched() -> None:
    trims = match_lengths(named(1, 12), [Fraction(5), Fraction(9)], seed=0)
    assert trims == {"r0": None, "r1": Fraction(9)}


@pytest.mark.parametrize("seed", range(20))
def test_as_many_clips_as_possible_are_trimmed_whatever_the_draw(seed) -> None:
    wanted = [Fraction(n) for n in (2, 4, 6, 8)]
    trims = match_lengths(named(2, 4, 6, 8), wanted, seed=seed)
    assert trims == {"r0": 2, "r1": 4, "r2": 6, "r3": 8}


def test_the_draw_follows_from_the_seed_and_not_from_the_order() -> None:
    lengths = named(10, 11, 12, 13, 14, 15)
    backwards = dict(reversed(lengths.items()))
    assert match_lengths(lengths, WANTED, seed=4) == match_lengths(backwards, WANTED, seed=4)
    draws = {str(sorted(match_lengths(lengths, WANTED, seed=s).items())) for s in range(8)}
    assert len(draws) > 1


def test_the_first_frame_is_kept_at_full_size(tmp_path) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(synthesise(ClipRecipe(width=320, height=192, n_frames=30)))
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        kept = read_first_frame(reader, path)
        gone = read_first_frame(reader, tmp_path / "absent.mp4")
    assert not isinstance(kept, Failure)
    assert (kept.index, kept.width, kept.height) == (0, 320, 192)
    assert read_index(kept.rgb()) == 0
    assert isinstance(gone, Failure)
