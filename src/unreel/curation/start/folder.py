"""A recipe for a folder or a table of one's own."""

from pathlib import Path
from typing import Any, Final

from unreel.core.output_files import OutputDirectory
from unreel.curation.frozen import require_free
from unreel.curation.start.guess import RecipeGuess, guess_sources
from unreel.curation.start.recipe import write_recipe

HEAD: Final = """\
Raw clips to a frozen benchmark: `unreel curate check {file}` tells what it would do, `unreel curate run {file}` does it.
A section behind a `#` is a step that is not taken; a key behind one has the value that is shown, or is only an example."""
_CHOSEN: Final[dict[str, Any]] = {
    "split": {},
    "crop": {},
    "screen": {"screens": {"motion": {}}},
    "lengths": {},
    "normalise": {},
    "audit": {},
    "freeze": {},
}
"""Steps that need no choice: duplicates and watermarks take longer, traces and stories are for some sets only."""


def start_recipe(path: Path, *, recipe: Path) -> RecipeGuess:
    """Write a recipe for the data at `path` to the file `recipe`; return guesses and open points.

    Raises:
        InvalidSettingError: The file exists already.
        UnreadableSourceError: There is no possible source at `path`.
    """
    require_free(recipe, "--out")
    guess = guess_sources(path, recipe=recipe)
    name = path.absolute().stem if path.is_file() else path.absolute().name
    values = {"name": name or "benchmark", "source": list(guess.sources)} | _CHOSEN
    text = write_recipe(values, head=HEAD.format(file=recipe.name))
    OutputDirectory(recipe.absolute().parent, published=True).write(recipe.name, text.encode())
    return guess
