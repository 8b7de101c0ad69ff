"""Draws a picture of each injected trace: `PYTHONPATH=tests python docs/images/draw_injections.py`.

Above, three frames of a synthesised clip; below, the same frames with the trace and its box.
"""

import sys
import tempfile
from functools import cache
from pathlib import Path

from PIL import Image

from synthesise import ClipRecipe, SceneName, synthesise
from unreel.core.settings import read_environment_settings
from unreel.core.trace import Category
from unreel.curation.inject.clip_injection import (
    CATEGORIES,
    InjectedFrames,
    LoadedClip,
    inject_trace_into_frames,
    load_clip_frames,
)
from unreel.media.access import open_media_reader
from unreel.media.overlay import draw_box_outline, get_palette_colour

HERE = Path(__file__).parent
WIDTH, HEIGHT = 480, 270
GAP = 6
N_FRAMES = 132
SCENES: dict[Category, tuple[SceneName, int]] = {
    Category.SUDDEN_BLURRING: ("street", 0),
    Category.OBJECT_DISTORTION: ("street", 1),
    Category.OBJECT_DISAPPEARANCE: ("street", 0),
    Category.REDUNDANT_OBJECT: ("room", 0),
    Category.OBJECT_MERGING: ("street", 18),
    Category.OBJECT_SPLITTING: ("room", 0),
    Category.OBJECT_TRAJECTORY: ("room", 0),
    Category.BACKGROUND_DISTORTION: ("street", 0),
    Category.UNEXPECTED_MOVE: ("street", 1),
}
"""The scene that shows a category well, and the seed of its trace."""


@cache
def load_scene(scene: SceneName) -> LoadedClip:
    """The clip of a scene, read back from its file."""
    recipe = ClipRecipe(scene=scene, width=WIDTH, height=HEIGHT, n_frames=N_FRAMES, seed=3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        path.write_bytes(synthesise(recipe))
        with open_media_reader(read_environment_settings(), trusted=True) as reader:
            clip = load_clip_frames(path, reader=reader)
    if not isinstance(clip, LoadedClip):
        sys.exit(str(clip))
    return clip


def draw_strip(clip: LoadedClip, done: InjectedFrames) -> Image.Image:
    """Three frames of the span without the trace, and below with it."""
    indices = sorted(done.frames)
    shown = [indices[round(part * (len(indices) - 1))] for part in (0.2, 0.5, 0.8)]
    boxes = {mark.at_us: mark.box for mark in done.trace.track}
    strip = Image.new("RGB", (3 * WIDTH + 2 * GAP, 2 * HEIGHT + GAP), "white")
    for column, index in enumerate(shown):
        left = column * (WIDTH + GAP)
        strip.paste(Image.fromarray(clip.pictures[index]), (left, 0))
        changed = done.frames[index].copy()
        draw_box_outline(changed, boxes[clip.instants_us[index]], get_palette_colour(0))
        strip.paste(Image.fromarray(changed), (left, HEIGHT + GAP))
    return strip.resize((strip.width * 2 // 3, strip.height * 2 // 3), Image.Resampling.LANCZOS)


def draw(category: Category) -> str:
    """Writes the picture of `category`; what its trace says."""
    scene, seed = SCENES[category]
    clip = load_scene(scene)
    done = inject_trace_into_frames(
        clip.pictures, instants_us=clip.instants_us, category=category, seed=seed, strength=1.0
    )
    if not isinstance(done, InjectedFrames):
        sys.exit(f"{scene}, seed {seed}: {done}")
    strip = draw_strip(clip, done)
    strip.quantize(256).save(HERE / f"inject-{category.value}.png", optimize=True)
    return done.trace.explanation


if __name__ == "__main__":
    wanted = [Category(name) for name in sys.argv[1:]] or CATEGORIES
    for chosen in wanted:
        sys.stdout.write(f"{chosen.value}: {draw(chosen)}\n")
