"""The recipe of a season as it was last played, from its working folder."""

import tomllib
from typing import Final

from unreel.arena.season.folder import RECIPE, SeasonFolder
from unreel.arena.season.recipe import SeasonRecipe, check_season
from unreel.core.errors import UnreadableSourceError

_MOST_BYTES: Final = 1 << 20


def read_stored_recipe(folder: SeasonFolder) -> SeasonRecipe:
    """Return the recipe of the season at `folder`; paths in it are those of the original file.

    Raises:
        UnreadableSourceError: Nothing was played there.
    """
    folder.require_played()
    try:
        data = folder.place.read(RECIPE, most=_MOST_BYTES)
        return check_season(tomllib.loads(data.decode()))
    except (FileNotFoundError, ValueError) as error:
        problem, remedy = "no recipe of a season", "Run it again: it is rewritten"
        raise UnreadableSourceError(str(folder.path / RECIPE), problem, remedy) from error
