"""A frozen benchmark by the folder that a person names: its own, or the curation's around it."""

from pathlib import Path

from unreel.core.errors import InvalidSettingError, UnreadableSourceError, UnreelError
from unreel.core.small_documents import RECIPE_BYTES, parse_object, read_bytes
from unreel.curation.freeze.step import CHECKSUMS, FROZEN, RECIPE
from unreel.curation.recipe import CurateRecipe, check_recipe


def require_free(file: Path, setting: str) -> None:
    """Raise for a file that is there already.

    Raises:
        InvalidSettingError: It is there, be it a link that leads nowhere.
    """
    if file.exists() or file.is_symlink():
        problem = f"{file} is there already"
        raise InvalidSettingError(setting, problem, "Name another one, or take it away first")


def require_empty(folder: Path, setting: str) -> None:
    """Raise for a folder that holds something, or that is none of its own.

    Raises:
        InvalidSettingError: It holds something, or is a file or a link.
    """
    if folder.is_symlink() or not folder.is_dir() or any(folder.iterdir()):
        require_free(folder, setting)


def find_frozen(folder: Path) -> Path:
    """Return the directory of the frozen benchmark, which is `folder` or inside `folder`.

    Raises:
        UnreadableSourceError: The benchmark is missing or incomplete.
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
