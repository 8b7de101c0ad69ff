"""Names of the catalogue's entries, which are the names of its files; no entry is read."""

from functools import cache
from importlib.resources import files
from typing import Literal


@cache
def list_entry_names(folder: Literal["benchmarks", "models"]) -> list[str]:
    """Return the names of the entries in `folder`, sorted."""
    paths = (files("unreel.catalogue") / folder).iterdir()
    return sorted(path.name[:-5] for path in paths if path.name.endswith(".toml"))
