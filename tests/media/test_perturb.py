"""Clips that are changed a little: exact, repeatable, and their boxes found again."""

import io
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from synthesise import ClipRecipe, synthesise
from unreel.core.box import Box
from unreel.core.clip import Clip
from unreel.core.content_ids import compute_clip_id
from unreel.core.failure import Failure
from unreel.core.settings import EnvironmentSettings
from unreel.media.access import open_media_reader
from unreel.media.perturb import plan_clip_variants
from unreel.media.probe import probe_clip

CLIP = ClipRecipe(n_frames=12, width=200, height=120, tone_hz=440, seed=3)


def clip_of(folder: Path, recipe: ClipRecipe) -> Clip:
    file = folder / f"clip.{recipe.container}"
    file.write_bytes(synthesise(recipe))
    return Clip(
        id=compute_clip_id(file),
        location=str(file),
        facts=probe_clip(io.BytesIO(file.read_bytes())),
    )


def made_of(clip: Clip) -> dict[str, bytes]:
    found = {}
    with open_media_reader(EnvironmentSettings(), trusted=True) as reader:
        for variant in plan_clip_variants(clip):
            data = variant.make(clip.location, reader)
            assert not isinstance(data, Failure), data
            found[variant.name] = data
    return found


def test_each_variant_is_what_its_name_says(tmp_path) -> None:
    clip = clip_of(tmp_path, CLIP)
    made = made_of(clip)
    facts = {name: probe_clip(io.BytesIO(data)) for name, data in made.items()}
    sizes = {name: (f.video.width, f.video.height) for name, f in facts.items()}
    assert sizes == {"recompressed": (200, 120), "scaled": (100, 60), "cropped": (180, 108)}
    assert all(f.video.n_frames == 12 and f.video.average_rate == 24 for f in facts.values())
    assert all(len(f.audio) == 1 for f in facts.values())
    assert len(made["recompressed"]) < len(made["cropped"])


def test_the_same_clip_gives_the_same_bytes_and_another_one_another_crop(tmp_path) -> None:
    clip = clip_of(tmp_path, CLIP)
    assert made_of(clip) == made_of(clip)
    crops = {
        str(plan_clip_variants(replace(clip, id=f"{n:08x}" + clip.id[8:]))[2])
        for n in range(40, 60)
    }
    assert len(crops) > 10


def test_a_box_of_the_crop_is_found_again_in_the_clip(tmp_path) -> None:
    clip = clip_of(tmp_path, CLIP)
    recompressed, scaled, cropped = plan_clip_variants(clip)
    box = Box(0.25, 0.25, 0.5, 0.5)
    assert recompressed.map_back(box) == scaled.map_back(box) == box
    crop = cropped.parameters
    found = cropped.map_back(box)
    assert found.x0 * 200 == pytest.approx(crop["left"] + 0.25 * crop["width"])
    assert found.y1 * 120 == pytest.approx(crop["top"] + 0.5 * crop["height"])
    assert cropped.map_back(Box(0, 0, 1, 1)).x1 <= 1


@pytest.mark.parametrize(
    "recipe",
    [
        replace(CLIP, width=67, height=65, container="gif", tone_hz=None),
        replace(CLIP, rate=Fraction(30000, 1001), container="mkv"),
        replace(CLIP, rotation_deg=90),
        replace(CLIP, n_frames=1, tone_hz=None),
        replace(CLIP, n_frames=3, instants_s=(Fraction(5), Fraction(6), Fraction(61, 10))),
    ],
    ids=["small and odd", "mkv", "turned", "one frame", "late and uneven"],
)
def test_any_clip_has_its_variants(tmp_path, recipe) -> None:
    for data in made_of(clip_of(tmp_path, recipe)).values():
        assert probe_clip(io.BytesIO(data)).video.n_frames >= 1
