"""Write the clips that ship with the package: those of the sandbox's warm-up and the sample's.

    python tests/shipped_clips.py

Run it after a change of their recipes, and commit what it wrote.
"""

from pathlib import Path

import unreel
from unreel.evaluation.sample_clip import RECIPE as SAMPLE
from unreel.media.synthesise import ClipRecipe, synthesise

PACKAGE = Path(unreel.__file__).parent
_SMALL = {"width": 64, "height": 64, "n_frames": 4, "gop": 4}
RECIPES = {
    "media/sandbox/clips/clip.mp4": ClipRecipe(**_SMALL, tone_hz=440, rotation_deg=90),
    "media/sandbox/clips/clip.ts": ClipRecipe(**_SMALL, container="ts"),
    "evaluation/sample.mp4": SAMPLE,
}
"""By their path in the package."""


def main() -> None:
    for name, recipe in RECIPES.items():
        (PACKAGE / name).write_bytes(synthesise(recipe))


if __name__ == "__main__":
    main()
