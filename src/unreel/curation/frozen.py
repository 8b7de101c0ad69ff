"""A frozen benchmark by the folder that a person names: its own, or the curation's around it."""

from pathlib import Path

from unreel.core.document import RECIPE_BYTES, parse_object, read_bytes
from unreel.core.errors import UnreadableSourceError, UnreelError
from unreel.curation.freeze.take import CHECKSUMS, FROZEN, RECIPE
from unreel.curation.recipe import CurateRecipe, check_recipe


def find_frozen(folder: Path) -> Path:
    """The folder of the frozen benchmark in, or at, `folder`.

    Raises:
        UnreadableSourceError: There is none, or it is not whole.
    """
    for place in (folder / FROZEN, folder):
        if (place / CHECKSUMS).is_file() and (place / RECIPE).is_file():
            return place
    problem = "there is no frozen benchmark"
    remedy = "Name the folder that `unreel curate run` prints, or the working folder around it"
    raise UnreadableSourceError(str(folder), problem, remedy)


def read_frozen_recipe(benchmark: Path) -> CurateRecipe:
    """Return the recipe stored in the benchmark.

    Raises:
        UnreadableSourceError: It is not a recipe of a curation.
    """
    try:
        return check_recipe(parse_object(read_bytes(benchmark / RECIPE, most=RECIPE_BYTES)))
    except UnreelError as error:
        remedy = "Freeze the benchmark again with `unreel curate run`"
        raise UnreadableSourceError(str(benchmark / RECIPE), str(error), remedy) from error
