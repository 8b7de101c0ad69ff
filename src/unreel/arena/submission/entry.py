"""Entries of teams: the file ENTRY.toml, findings of its checks, and accepted entries."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError, model_validator

from unreel.arena.season.recipe import Season, SeasonReviewerSection
from unreel.arena.submission.season_log import (
    EntryState,
    SeasonLog,
    SeasonLogEvent,
    append_log_events,
    read_season_log,
)
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.input_files import read_toml_file
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.creators.config import CreatorRecipeSection
from unreel.recipes.validation import Line, RecipeSection, Text, validate_recipe_sections

_SHOWN: Final = 5


class EntryFindingSeverity(StrEnum):
    """Severity of a problem in an entry: the entry is rejected, or its team is warned."""

    REFUSES = "refuses"
    WARNS = "warns"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFinding:
    """One problem that a check found in an entry, and the affected clips."""

    check: str
    weight: EntryFindingSeverity
    words: str
    """Description of the problem, followed by its remedy."""
    clips: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = len(self.clips) - _SHOWN
        named = ", ".join(self.clips[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return f"{self.check}: {self.words}" + (f" ({named})" if named else "")


def merge_equal_findings(findings: Iterable[EntryFinding]) -> tuple[EntryFinding, ...]:
    """Merge equal problems of an entry into one with all their clips; problems that reject come first."""
    clips: dict[tuple[str, EntryFindingSeverity, str], list[str]] = {}
    for f in findings:
        clips.setdefault((f.check, f.weight, f.words), []).extend(f.clips)
    gathered = [
        EntryFinding(check=check, weight=weight, words=words, clips=tuple(names))
        for (check, weight, words), names in clips.items()
    ]
    return tuple(sorted(gathered, key=lambda f: f.weight is not EntryFindingSeverity.REFUSES))


class SeasonEntryRecipe(RecipeSection):
    """Content of ENTRY.toml: team, licence, statement, and the creator or reviewer."""

    team: Line
    licence: Text = ""
    """Licence under which the entry's clips or answers may be shown."""
    statement: Text = ""
    """Description of the entry, and of the parts of the benchmark that it has seen."""
    declared: bool = False
    """Whether this attempt is the ranked one; valid only before any attempt of the team takes part."""
    creator: CreatorRecipeSection | None = None
    reviewer: SeasonReviewerSection | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "SeasonEntryRecipe":
        if (self.creator is None) == (self.reviewer is None):
            setting = "entry"
            problem = "it enters one board: a creator or a reviewer, not both and not none"
            raise InvalidSettingError(setting, problem, "Write one of [creator] and [reviewer]")
        return self

    @property
    def kind(self) -> Literal["creator", "reviewer"]:
        """Return the kind of the entry, which decides its leaderboard: creator or reviewer."""
        return "reviewer" if self.creator is None else "creator"

    @property
    def title(self) -> str:
        """Return the title of the entry on its leaderboard."""
        if self.creator is not None:
            return self.creator.name
        return "" if self.reviewer is None else self.reviewer.shown

    def beside(self, base: Path) -> "SeasonEntryRecipe":
        """Return the recipe of the entry with its relative paths starting at the folder `base`."""
        if self.creator is not None:
            return self.model_copy(update={"creator": self.creator.beside(base)})
        if self.reviewer is None:  # excluded by validation
            return self
        title, values = self.reviewer.title, self.reviewer.values(base)
        return self.model_copy(update={"reviewer": SeasonReviewerSection(title=title, **values)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedEntry:
    """An entry as submitted: the parsed recipe with absolute paths, and the text of its file."""

    recipe: SeasonEntryRecipe
    """Recipe with absolute paths."""
    text: bytes


def read_entry_file(file: Path) -> SubmittedEntry:
    """Read an entry from its TOML file; raise `UnreelError` with the first problem."""
    base = file.absolute().parent
    recipe = validate_recipe_sections(SeasonEntryRecipe, read_toml_file(file, "entry")).beside(base)
    _require_files_in_entry_folder(
        () if recipe.reviewer is None else recipe.reviewer.command[1:], base
    )
    return SubmittedEntry(recipe=recipe, text=file.read_bytes())


def _require_files_in_entry_folder(arguments: Iterable[str], base: Path) -> None:
    """Check that the arguments of a reviewer's program name no files outside the entry's folder.

    Raises:
        InvalidSettingError: An argument is a file elsewhere, which the program could read.
    """
    for word in arguments:
        path = Path(word)
        if path.is_absolute() and path.is_file() and base.resolve() not in path.resolve().parents:
            setting, problem = "command", f"{word!a} is outside the entry's folder"
            raise InvalidSettingError(setting, problem, "Put it next to the entry's file")


ENTRIES: Final = "entries"
_PLAYS: Final = frozenset({EntryState.ACCEPTED, EntryState.PLAYED})
_MOST_BYTES: Final = 1 << 20
_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class AcceptedEntry:
    """An accepted entry that takes part in the season: its recipe, and its state in the log."""

    recipe: SeasonEntryRecipe
    state: EntryState


def format_entry_file_name(title: str) -> str:
    """Return the file name of an entry in the folder `entries/`, without extension."""
    return f"{make_safe_file_name(title)}-{digest('entry of a season', title)[:_DIGITS]}"


def store_accepted_entry(folder: Path, recipe: SeasonEntryRecipe, text: bytes) -> None:
    """Store an accepted entry in the season's folder: the submitted TOML, and its settings as JSON."""
    name, files = format_entry_file_name(recipe.title), OutputDirectory(folder)
    files.write(f"{ENTRIES}/{name}.toml", text)
    document = recipe.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    files.write(f"{ENTRIES}/{name}.json", json.dumps(document, indent=2).encode())


def read_accepted_entries(folder: Path) -> list[AcceptedEntry]:
    """Return the accepted entries of the season at `folder`, in the order of acceptance.

    Entries that were withdrawn or retired are omitted.

    Raises:
        UnreadableSourceError: The log or an entry is damaged.
    """
    history = read_season_log(folder)
    history.require_whole()
    titles = dict.fromkeys(e.entry for e in history.events if e.state is EntryState.ACCEPTED)
    states = {title: history.state(title) for title in titles}
    return [
        AcceptedEntry(_read_accepted_entry(folder, title), state)
        for title, state in states.items()
        if state in _PLAYS
    ]


def add_accepted_entries(season: Season, folder: Path) -> Season:
    """Return the season with the accepted entries stored in `folder` added to its entrants."""
    entered = [entry.recipe for entry in read_accepted_entries(folder)]
    recipe = season.recipe
    update = {
        "creator": (*recipe.creator, *(e.creator for e in entered if e.creator is not None)),
        "reviewer": (*recipe.reviewer, *(e.reviewer for e in entered if e.reviewer is not None)),
    }
    return replace(season, recipe=recipe.model_copy(update=update)) if entered else season


def log_played_entries(folder: Path, titles: Collection[str], *, at_us: int) -> None:
    """Log that the accepted entries with these titles took part in a run; other titles are ignored."""

    def played(history: SeasonLog) -> list[SeasonLogEvent]:
        last = {event.entry: event for event in history.events if event.entry in titles}
        return [
            replace(event, state=EntryState.PLAYED, at_us=at_us, reasons=())
            for event in last.values()
            if event.state is EntryState.ACCEPTED
        ]

    if any(entry.recipe.title in titles for entry in read_accepted_entries(folder)):
        append_log_events(folder, played)


def _read_accepted_entry(folder: Path, title: str) -> SeasonEntryRecipe:
    name = f"{ENTRIES}/{format_entry_file_name(title)}.json"
    try:
        with OutputDirectory(folder).read(name) as file:
            return SeasonEntryRecipe.model_validate_json(file.read(_MOST_BYTES))
    except (FileNotFoundError, ValidationError) as error:
        problem = f"the entry {title!a} was accepted, and its file is gone or damaged"
        remedy = "Put it back, or withdraw the entry with `unreel arena withdraw`"
        raise UnreadableSourceError(str(folder / name), problem, remedy) from error
