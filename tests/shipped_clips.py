"""Write the clips that ship with the package: those of the sandbox's warm-up and the samples.

    python tests/shipped_clips.py

Run it after a change of their recipes, and commit the files that it writes.
"""

from fractions import Fraction
from pathlib import Path

from pydantic import TypeAdapter

import unreel
from synthesise import ClipRecipe, planted_trace, synthesise
from unreel.core.trace import Trace
from unreel.curation.recipe_template import SAMPLE_CLIPS

PACKAGE = Path(unreel.__file__).parent
REVIEW_SAMPLE = ClipRecipe(
    scene="street", flawed=True, width=640, height=360, n_frames=120, gop=24, seed=4
)
_SMALL = {"width": 64, "height": 64, "n_frames": 4, "gop": 4}
_WITH_SOUND = {"rate": Fraction(12), "tone_hz": 440}


def _curation_recipe(name: str, seed: int) -> ClipRecipe:
    """Return the recipe of a clip of the curation sample."""
    match name:
        case "real/still.mp4":
            scene, n_frames, rate = "room", 1, Fraction(1, 2)
        case "real/whose.mp4":
            scene, n_frames, rate = "street", 40, Fraction(12)
        case _:
            scene, rate = ("room", "street")[seed // 2 % 2], Fraction(12)
            n_frames = (40, 28)[seed % 2] + seed
    flawed = name.startswith("generated/")
    return ClipRecipe(
        scene=scene, flawed=flawed, width=160, height=90, rate=rate, n_frames=n_frames, seed=seed
    )


RECIPES = {
    "media/sandbox/clips/clip.mp4": ClipRecipe(**_SMALL, tone_hz=440, rotation_deg=90),
    "media/sandbox/clips/clip.ts": ClipRecipe(**_SMALL, container="ts"),
    "evaluation/sample.mp4": REVIEW_SAMPLE,
    **{f"media/samples/ball-{n}.mp4": ClipRecipe(n_frames=24, seed=n) for n in range(4)},
    **{
        f"media/samples/sound-{n_frames}-{n}.mp4": ClipRecipe(
            n_frames=n_frames, seed=n, **_WITH_SOUND
        )
        for n_frames in (12, 24)
        for n in range(2)
    },
    **{
        f"media/samples/{name}": _curation_recipe(name, seed)
        for seed, name in enumerate(file for file in SAMPLE_CLIPS if file != "real/again.mp4")
    },
}
"""By their path in the package."""


def main() -> None:
    for name, recipe in RECIPES.items():
        (PACKAGE / name).parent.mkdir(parents=True, exist_ok=True)
        (PACKAGE / name).write_bytes(synthesise(recipe))
    traces = TypeAdapter(tuple[Trace, ...]).dump_json((planted_trace(REVIEW_SAMPLE),))
    (PACKAGE / "evaluation/sample.json").write_bytes(traces + b"\n")


if __name__ == "__main__":
    main()
