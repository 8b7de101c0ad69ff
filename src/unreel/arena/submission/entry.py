"""File ENTRY.toml: the creator or reviewer that a team submits, and the team's statements about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from unreel.arena.season.recipe import ReviewerEntry
from unreel.core.errors import InvalidSettingError
from unreel.core.small_documents import read_toml
from unreel.creators.config import CreatorSection
from unreel.recipes.check import check_sections
from unreel.recipes.section import Line, RecipeSection, Text


class EntryRecipe(RecipeSection):
    """Everything that a team says of its entry."""

    team: Line
    licence: Text = ""
    """Under which its clips, or its answers, may be shown."""
    statement: Text = ""
    """What it is, and what it has seen of the benchmark."""
    declared: bool = False
    """Whether this try is the one to rank, said before any try of the team is played."""
    creator: CreatorSection | None = None
    reviewer: ReviewerEntry | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "EntryRecipe":
        if (self.creator is None) == (self.reviewer is None):
            setting = "entry"
            problem = "it enters one board: a creator or a reviewer, not both and not none"
            raise InvalidSettingError(setting, problem, "Write one of [creator] and [reviewer]")
        return self

    @property
    def kind(self) -> Literal["creator", "reviewer"]:
        """Return the board of the entry."""
        return "reviewer" if self.creator is None else "creator"

    @property
    def title(self) -> str:
        """Return the title of the entry on its board."""
        if self.creator is not None:
            return self.creator.name
        return "" if self.reviewer is None else self.reviewer.shown

    def beside(self, base: Path) -> "EntryRecipe":
        """Return the same recipe with all paths starting at the directory `base`."""
        if self.creator is not None:
            return self.model_copy(update={"creator": self.creator.beside(base)})
        if self.reviewer is None:  # validation excludes it
            return self
        title, values = self.reviewer.title, self.reviewer.values(base)
        return self.model_copy(update={"reviewer": ReviewerEntry(title=title, **values)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedEntry:
    """An entry as it was handed in."""

    recipe: EntryRecipe
    """With paths that hold wherever it is read."""
    text: bytes


def read_entry(file: Path) -> SubmittedEntry:
    """Read an entry from its TOML file.

    Raises:
        UnreelError: The file cannot be read or is invalid; the error names the first problem.
    """
    base = file.absolute().parent
    recipe = check_sections(EntryRecipe, read_toml(file, "entry")).beside(base)
    _require_own_files(() if recipe.reviewer is None else recipe.reviewer.command[1:], base)
    return SubmittedEntry(recipe=recipe, text=file.read_bytes())


def _require_own_files(arguments: Iterable[str], base: Path) -> None:
    """Raise if a program uses files outside the entry's folder: it could read neighbouring files."""
    for word in arguments:
        path = Path(word)
        if path.is_absolute() and path.is_file() and base.resolve() not in path.resolve().parents:
            setting, problem = "command", f"{word!a} is outside the entry's folder"
            raise InvalidSettingError(setting, problem, "Put it next to the entry's file")
