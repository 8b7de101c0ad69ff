"""Accepted entries: read with the season's recipe and treated like its own entrants."""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from unreel.arena.season.recipe import Season
from unreel.arena.submission.entry import EntryRecipe
from unreel.arena.submission.log import EntryState, LogEvent, SeasonLog, append_all, read_log
from unreel.core.errors import UnreadableSourceError
from unreel.core.identity import digest
from unreel.core.names import plain_name
from unreel.core.output_files import OutputDirectory

ENTRIES: Final = "entries"
_PLAYS: Final = frozenset({EntryState.ACCEPTED, EntryState.PLAYED})
_MOST_BYTES: Final = 1 << 20
_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class AcceptedEntry:
    """An accepted entry that takes part, with its state."""

    recipe: EntryRecipe
    state: EntryState


def entry_name(title: str) -> str:
    """Return the file name of an entry in `entries/`."""
    return f"{plain_name(title)}-{digest('entry of a season', title)[:_DIGITS]}"


def keep_entry(folder: Path, recipe: EntryRecipe, text: bytes) -> None:
    """Store an accepted entry, both normalised and as submitted."""
    name, files = entry_name(recipe.title), OutputDirectory(folder)
    files.write(f"{ENTRIES}/{name}.toml", text)
    document = recipe.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    files.write(f"{ENTRIES}/{name}.json", json.dumps(document, indent=2).encode())


def read_accepted_entries(folder: Path) -> list[AcceptedEntry]:
    """Return the accepted entries of the season at `folder`, in the order of acceptance.

    Entries that were withdrawn or retired are omitted.

    Raises:
        UnreadableSourceError: The log or an entry is damaged.
    """
    history = read_log(folder)
    history.require_whole()
    titles = dict.fromkeys(e.entry for e in history.events if e.state is EntryState.ACCEPTED)
    states = {title: history.state(title) for title in titles}
    return [
        AcceptedEntry(_read_accepted_entry(folder, title), state)
        for title, state in states.items()
        if state in _PLAYS
    ]


def add_accepted_entries(season: Season, folder: Path) -> Season:
    """Return the season with all accepted entries."""
    entered = [each.recipe for each in read_accepted_entries(folder)]
    recipe = season.recipe
    update = {
        "creator": (*recipe.creator, *(e.creator for e in entered if e.creator is not None)),
        "reviewer": (*recipe.reviewer, *(e.reviewer for e in entered if e.reviewer is not None)),
    }
    return replace(season, recipe=recipe.model_copy(update=update)) if entered else season


def log_played_entries(folder: Path, titles: Collection[str], *, at_us: int) -> None:
    """Record that the entries with these titles took part; other titles are ignored."""

    def played(history: SeasonLog) -> list[LogEvent]:
        last = {event.entry: event for event in history.events if event.entry in titles}
        return [
            replace(event, state=EntryState.PLAYED, at_us=at_us, reasons=())
            for event in last.values()
            if event.state is EntryState.ACCEPTED
        ]

    if any(each.recipe.title in titles for each in read_accepted_entries(folder)):
        append_all(folder, played)


def _read_accepted_entry(folder: Path, title: str) -> EntryRecipe:
    name = f"{ENTRIES}/{entry_name(title)}.json"
    try:
        with OutputDirectory(folder).read(name) as file:
            return EntryRecipe.model_validate_json(file.read(_MOST_BYTES))
    except (FileNotFoundError, ValidationError) as error:
        problem = f"the entry {title!a} was accepted, and its file is gone or damaged"
        remedy = "Put it back, or withdraw the entry with `unreel arena withdraw`"
        raise UnreadableSourceError(str(folder / name), problem, remedy) from error
