"""Sample clips of the package, with a table of their labels and licences, and a recipe that takes them.

Three of them will be excluded: one without a licence, a still one, and a duplicate.
"""

from pathlib import Path
from typing import Any, Final

from unreel.core.judgement import Label
from unreel.core.output_files import OutputDirectory
from unreel.core.sheet import csv_text
from unreel.curation.frozen import require_empty
from unreel.curation.start.recipe import write_recipe
from unreel.media.sample_clips import read_sample_clip

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
SAMPLE_CLIPS: Final = (
    *(f"{('real', 'generated')[number % 2]}/{number:02}.mp4" for number in range(12)),
    "real/again.mp4",
    "real/still.mp4",
    "real/whose.mp4",
)
_FILE_OF: Final = {"real/again.mp4": "real/00.mp4"}
_NO_LICENCE: Final = "real/whose.mp4"
_COLUMNS: Final = ("file", "label", "creator", "licence", "source")


def write_sample(folder: Path) -> tuple[Path, int]:
    """Write the clips into `folder`, with their table and their recipe; return the recipe and the count.

    Raises:
        InvalidSettingError: The folder is not empty.
    """
    require_empty(folder, "FOLDER")
    target = OutputDirectory(folder, published=True)
    rows = []
    for file in SAMPLE_CLIPS:
        target.write(f"{CLIPS}/{file}", read_sample_clip(_FILE_OF.get(file, file)))
        label = file.partition("/")[0]
        creator = "drawn-faulty" if label == Label.GENERATED.value else ""
        licence = "" if file == _NO_LICENCE else "CC0-1.0"
        cells = (file, label, creator, licence, "drawn by unreel")
        rows.append(dict(zip(_COLUMNS, cells, strict=True)))
    target.write(TABLE, csv_text(_COLUMNS, rows).encode())
    return target.write(RECIPE, write_recipe(VALUES, head=HEAD).encode()), len(rows)
