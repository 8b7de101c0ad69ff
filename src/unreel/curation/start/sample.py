"""Synthetic sample clips, with a table of their labels and licences, and a recipe.

Three of them will be excluded: one without a licence, a still one, and a duplicate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from unreel.core.judgement import Label
from unreel.core.sheet import csv_text
from unreel.core.writing import OutputDirectory
from unreel.curation.free import require_empty
from unreel.curation.start.recipe import write_recipe
from unreel.media.synthesise import ClipRecipe, SceneName, synthesise

RECIPE: Final = "curate.toml"
CLIPS: Final = "clips"
TABLE: Final = f"{CLIPS}/manifest.csv"
HEAD: Final = """\
Drawn clips to a frozen benchmark, on any machine and offline: `unreel curate init sample --sample`, then
`unreel curate run sample/curate.toml`. Half of the clips have a fault drawn in; no camera and no generator took part.
A section behind a `#` is a step that is not taken; a key behind one has the value that is shown, or is only an example."""
VALUES: Final[dict[str, Any]] = {
    "name": "drawn clips",
    "seed": 1,
    "source": [{"path": TABLE}],
    "split": {},
    "crop": {},
    "screen": {"screens": {"motion": {}}},
    "lengths": {},
    "normalise": {"width": 128, "height": 72, "rate": 12},
    "audit": {"texts": False},
    "freeze": {
        "version": "1.0.0",
        "shares": [2, 1, 1],
        "about": "Clips that unreel drew, to try a curation with. They measure nobody.",
    },
}
_SCENES: Final[tuple[SceneName, SceneName]] = ("room", "street")
_COLUMNS: Final = ("file", "label", "creator", "licence", "source")
_SIZE: Final = (160, 90)
_RATE: Final = Fraction(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SampleClip:
    """A clip of the sample: its line of the table, and how it is drawn."""

    file: str
    label: Label
    seed: int
    scene: SceneName
    n_frames: int = 40
    licence: str = "CC0-1.0"


def write_sample(folder: Path, *, seed: int) -> tuple[Path, int]:
    """Draw the clips into `folder`, with their table and their recipe; the recipe, and how many.

    The same seed gives the same bytes.

    Raises:
        InvalidSettingError: The folder holds something already.
    """
    require_empty(folder, "FOLDER")
    target = OutputDirectory(folder, published=True)
    rows = []
    for clip in _clips(seed):
        target.write(f"{CLIPS}/{clip.file}", _draw(clip))
        creator = "drawn-faulty" if clip.label is Label.GENERATED else ""
        cells = (clip.file, clip.label.value, creator, clip.licence, "drawn by unreel")
        rows.append(dict(zip(_COLUMNS, cells, strict=True)))
    target.write(TABLE, csv_text(_COLUMNS, rows).encode())
    return target.write(RECIPE, write_recipe(VALUES, head=HEAD).encode()), len(rows)


def _clips(seed: int) -> Iterator[_SampleClip]:
    for number in range(12):
        label = Label.GENERATED if number % 2 else Label.REAL
        yield _SampleClip(
            file=f"{label.value}/{number:02}.mp4",
            label=label,
            seed=100 * seed + number,
            scene=_SCENES[number // 2 % 2],
            n_frames=(28 if number % 2 else 40) + number,
        )
    first = 100 * seed
    real = Label.REAL
    yield _SampleClip(file="real/again.mp4", label=real, seed=first, scene=_SCENES[0])
    yield _SampleClip(file="real/still.mp4", label=real, seed=first + 12, scene="room", n_frames=1)
    yield _SampleClip(
        file="real/whose.mp4", label=real, seed=first + 13, scene="street", licence=""
    )


def _draw(clip: _SampleClip) -> bytes:
    width, height = _SIZE
    still = clip.n_frames == 1
    return synthesise(
        ClipRecipe(
            scene=clip.scene,
            flawed=clip.label is Label.GENERATED,
            width=width,
            height=height,
            rate=Fraction(1, 2) if still else _RATE,
            n_frames=clip.n_frames,
            seed=clip.seed,
        )
    )
