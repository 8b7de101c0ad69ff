"""Working folder of a season: clips, answers, entrants, plan, and the recipe of the last run."""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from unreel.arena.season.recipe import Season, SeasonRecipe, validate_season_recipe
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.core.server_keys import remove_server_from_model_name
from unreel.creators.contract import ClipClass
from unreel.engine.clip_facts import CLIPS
from unreel.engine.location import StorageLocation, resolve_location
from unreel.engine.schema import TableSchema
from unreel.protocols.protocol import get_protocol
from unreel.recipes.validation import RecipeSection, Text

if TYPE_CHECKING:
    from unreel.engine.table import LanceTable


MADE = TableSchema(
    name="made clips",
    version=1,
    columns={
        "creator": "string",
        "name": "string",
        "side": "string",
        "setting": "string",
        "scene": "string",
        "seed": "int64",
        "model": "string",
        "parameters": "string",
        "traces": "string",
        "cost_usd": "float64",
        "took_us": "int64",
        "sha256": "string",
        "size_bytes": "int64",
        "facts": "string",
        "file": "string",
    },
)
"""Schema of the table of requested clips. `creator` is its title, `name` its stable name, `parameters`
and `facts` are JSON; `file` is relative to the season's folder. A scene without a required input
is a failure too.
"""


SEASONS = "seasons"
RECIPE = "season.toml"
ENTRANTS = "entrants.json"
PLAN = "plan.json"
SET = "set"
RUNS = "runs"
MADE_FOLDER = "made"
NOTES = "notes"
BENCH = "bench"
_MOST_BYTES = 16 << 20
_DIGITS = 8


class EnteredReviewer(RecipeSection):
    """A reviewer of the season, as stored in the list of entrants."""

    title: Text
    name: Text
    """Stable name, made from everything that affects the answers."""
    folder: Text
    """Name of the run's folder below `runs/`."""
    floor: bool = False
    retired: bool = False
    """Whether the recipe no longer contains the reviewer; its answers stay."""
    conditions: dict[str, Text] = Field(default={})
    """Text of each condition, as in the answers table, by the condition's title."""
    unfitted: Text = ""
    """Reason why a baseline could not be fitted; "" if it could."""


class EnteredCreator(RecipeSection):
    """A creator of the season, as stored in the list of entrants; its clips may be in the benchmark."""

    title: Text
    name: Text
    kind: Text
    side: ClipClass
    settings: tuple[Text, ...] = ()
    held: Text = ""
    """Name of the creator in the benchmark, if its clips are there; otherwise empty."""
    retired: bool = False


class SeasonEntrants(RecipeSection):
    """Entrants of a season, including withdrawn entrants."""

    season: Text = ""
    protocol: Text = "reality"
    digest: Text = ""
    """Hash of the benchmark."""
    seed: int = 0
    conditions: tuple[Text, ...] = ()
    creators: tuple[EnteredCreator, ...] = Field(default=())
    reviewers: tuple[EnteredReviewer, ...] = Field(default=())

    @property
    def is_about_pairs(self) -> bool:
        """Return whether the questions of a season show two clips at a time."""
        return get_protocol(self.protocol).subject == "pair"

    @property
    def heard(self) -> tuple[EnteredReviewer, ...]:
        """Return the reviewers that took part in a season: all except baselines that could not be fitted."""
        return tuple(reviewer for reviewer in self.reviewers if not reviewer.unfitted)

    def require_condition(self, title: str) -> None:
        """Raise `UnknownNameError` if the season has no condition with that title."""
        if title not in self.conditions:
            raise UnknownNameError("condition", title, list(self.conditions))

    @property
    def retired(self) -> tuple[str, ...]:
        """Return the titles of the withdrawn creators and reviewers."""
        creators = [entrant.title for entrant in self.creators if entrant.retired]
        return (*creators, *(entrant.title for entrant in self.reviewers if entrant.retired))

    @property
    def retired_creators(self) -> frozenset[str]:
        """Return the titles of withdrawn creators."""
        titles = self.shown(self.creators)
        return frozenset(titles[creator.name] for creator in self.creators if creator.retired)

    def shown(self, entrants: Sequence[EnteredCreator | EnteredReviewer]) -> dict[str, str]:
        """Return entrants' leaderboard titles by stable name; shared titles include the name."""
        return disambiguate_entrant_titles((entrant.title, entrant.name) for entrant in entrants)


def disambiguate_entrant_titles(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a unique title for each pair of title and stable name, by stable name.

    It is the title alone if no other entrant shares it. The server's URL, which titles of earlier
    releases may contain, is removed.
    """
    named = {name: remove_server_from_model_name(title) for title, name in pairs}
    tally = Counter(named.values())

    def call(title: str, name: str) -> str:
        if tally[title] == 1:
            return title
        return name if name.startswith(title) else f"{title} ({name})"

    return {name: call(title, name) for name, title in named.items()}


@dataclass(frozen=True, slots=True)
class SeasonFolder:
    """The working folder of a season: its tables, files and entrants."""

    place: StorageLocation

    @property
    def path(self) -> Path:
        return self.place.path

    @property
    def files(self) -> OutputDirectory:
        return OutputDirectory(self.path)

    @property
    def made(self) -> "LanceTable":
        """Return the table of clips that were requested from creators."""
        from unreel.engine.table import LanceTable

        return LanceTable(self.place / "made.lance", MADE)

    @property
    def benchmark_clips(self) -> "LanceTable":
        from unreel.engine.table import LanceTable

        return LanceTable(self.place / "benchmark.lance", CLIPS)

    @property
    def set(self) -> Path:
        """Return the folder of the season's clip set: all its clips, as a benchmark in unreel's layout."""
        return self.path / SET

    def run(self, folder: str) -> StorageLocation:
        return self.place / RUNS / folder

    def entrants(self) -> SeasonEntrants:
        """Return the season's entrants, none before its start; raise `UnreadableSourceError` if damaged."""
        try:
            data = self.place.read(ENTRANTS, most=_MOST_BYTES)
        except FileNotFoundError:
            return SeasonEntrants()
        try:
            return SeasonEntrants.model_validate_json(data)
        except ValidationError as error:
            source = str(self.path / ENTRANTS)
            raise UnreadableSourceError(
                source,
                "no list of entrants",
                "Move it away and run again: who was taken out before is not known then",
            ) from error

    def keep_entrants(self, entrants: SeasonEntrants) -> None:
        self.write_json(ENTRANTS, entrants.model_dump(mode="json"))

    def write_json(self, name: str, document: Any) -> None:
        text = json.dumps(document, indent=2, ensure_ascii=False, sort_keys=False) + "\n"
        self.place.put(name, text.encode())

    def require_played(self) -> SeasonEntrants:
        """Return the entrants of a started season; raise `UnreadableSourceError` if none was run here."""
        entrants = self.entrants()
        if not entrants.season:
            raise UnreadableSourceError(
                str(self.path),
                "no season was played here",
                "Play it with `unreel arena run SEASON.toml`, or name its folder with --out",
            )
        return entrants


def resolve_season_folder(season: Season, out: str | Path | None) -> SeasonFolder:
    """Open the working folder of `season`: `out`, or `seasons/NAME` if `out` is `None`."""
    folder = str(out or Path(SEASONS) / make_safe_file_name(season.recipe.name))
    return _open_local_season_folder(folder)


def find_season_folder(text: str | Path, out: str | Path | None = None) -> SeasonFolder:
    """Open the working folder of a season, given the folder or the TOML file of the season."""
    from unreel.arena.season.recipe import read_season

    named = Path(text)
    if out is None and (named / ENTRANTS).is_file():
        return _open_local_season_folder(str(named))
    return resolve_season_folder(read_season(named), out)


def _open_local_season_folder(folder: str) -> SeasonFolder:
    if "://" in folder:
        raise InvalidSettingError(
            "--out", f"a season plays in a folder of this machine, not in {folder}", "Name a folder"
        )
    return SeasonFolder(resolve_location(str(Path(folder).absolute()), {}))


def format_reviewer_folder_name(title: str, identity: str) -> str:
    """Return the folder name of a reviewer's answers: its title and a digest of its settings."""
    return f"{make_safe_file_name(title)}-{digest('reviewer of a season', identity)[:_DIGITS]}"


def format_creator_folder_name(title: str, name: str) -> str:
    """Return the name of the directory of a creator's clips below `made/`."""
    return f"{make_safe_file_name(title)}-{digest('creator of a season', name)[:_DIGITS]}"


_MOST_RECIPE_BYTES = 1 << 20


def read_stored_season_recipe(folder: SeasonFolder) -> SeasonRecipe:
    """Return the recipe that is stored in a season's folder; its paths are those of the original file."""
    folder.require_played()
    try:
        data = folder.place.read(RECIPE, most=_MOST_RECIPE_BYTES)
        return validate_season_recipe(tomllib.loads(data.decode()))
    except (FileNotFoundError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnreadableSourceError(
            str(folder.path / RECIPE), "no recipe of a season", "Run it again: it is rewritten"
        ) from error
