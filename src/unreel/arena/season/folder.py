"""Season file with a commented template, and the working folder: clips, answers, entrants and plan."""

import json
import os
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError, field_validator, model_validator

from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import open_benchmark
from unreel.core.clip import Generated
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.input_files import read_toml_file
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_names import make_safe_file_name
from unreel.core.server_keys import remove_server_from_model_name
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.contract import ClipClass
from unreel.engine.clip_facts import CLIPS
from unreel.engine.location import StorageLocation, resolve_location
from unreel.engine.schema import TableSchema
from unreel.evaluation.recipe import EvalRecipe
from unreel.evaluation.recipe import validate_eval_recipe as check_eval
from unreel.protocols.protocol import get_protocol, list_protocol_names
from unreel.recipes.validation import (
    MAX_PARTS,
    Count,
    Line,
    RecipeNumberUnit,
    RecipeSection,
    Seed,
    Text,
    validate_recipe_sections,
)
from unreel.reviewers.condition_section import ConditionSection
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.model_address import LOCAL
from unreel.reviewers.external.detector_program import resolve_command_files
from unreel.reviewers.registry import FITTED

if TYPE_CHECKING:
    from unreel.engine.table import LanceTable


_TEMPLATE = """\
# Season of unreel. docs/arena.md explains all settings.
name = {name}
benchmark = {benchmark}  # path from this file
# digest = ""            # hash of the benchmark; `unreel arena plan {file} --pin` writes it
protocol = "reality"     # or trace, locate, preference
seed = 0
# split = "test"         # only this split
# limit = 50             # only this number of scenes, sampled by the seed
# floors = false         # do not add the baselines coin, always-real, metadata and motion

{creators}
# [[creator]]            # clips of your own generator, one file per scene
# name = "Mine"
# kind = "folder"
# path = "my-clips"

# [[reviewer]]           # models, programs and services that judge; repeat it for several
# model = "openai/gpt-5"

# [[condition]]          # model input
# sampling = "uniform-8"

# [budget]
# max_questions = 1000
# max_cost_usd = 10.0
"""
_CREATOR = """\
[[creator]]
name = {name}
kind = "frozen"          # its clips are in the benchmark
creator = {name}
"""
_NO_CREATOR = """\
[[creator]]              # the benchmark has no generated clips: real clips, recompressed
name = "recompressed"
kind = "degrade"
way = "recompressed"
"""


def write_season_template(benchmark: Path, file: Path) -> Sequence[str]:
    """Write a commented season file for `benchmark` to `file`, and return the creators in it."""
    if file.exists():
        raise InvalidSettingError(
            "--out", f"{file} exists and is not replaced", "Name another file"
        )
    origins = [row.origin for row in open_benchmark(benchmark) if isinstance(row, Entry)]
    creators = sorted({origin.creator for origin in origins if isinstance(origin, Generated)})
    sections = [_CREATOR.format(name=json.dumps(name)) for name in creators] or [_NO_CREATOR]
    path = Path(os.path.relpath(benchmark.absolute(), file.absolute().parent))
    text = _TEMPLATE.format(
        name=json.dumps(benchmark.absolute().stem),
        benchmark=json.dumps(path.as_posix()),
        file=file.name,
        creators="\n".join(sections),
    )
    OutputDirectory(file.absolute().parent, published=True).write(file.name, text.encode())
    return creators


ALWAYS_THERE = ("coin", "always-real", *FITTED)
"""Baselines that take part in every season for comparison."""
_FILES = ("recorded", "prices")


class SeasonReviewerSection(ReviewerSection):
    """Section `[[reviewer]]`: a reviewer of the season."""

    title: Line | None = None
    """Title on the board; by default the model without the URL of its server."""

    @property
    def shown(self) -> str:
        """Return the leaderboard title of a reviewer; by default the model without its server's URL."""
        return self.title or remove_server_from_model_name(self.model)

    def values(self, base: Path) -> dict[str, Any]:
        """Return a reviewer's settings as in an evaluation recipe; paths start at `base`, the recipe's folder."""
        settings = self.model_dump(mode="json", exclude={"title"}, exclude_unset=True)
        for key in _FILES:
            if settings.get(key):
                settings[key] = str(base / Path(settings[key]).expanduser())
        if self.command:
            settings["command"] = resolve_command_files(self.command, base)
        if self.model.startswith(LOCAL):
            path = base / Path(self.model.removeprefix(LOCAL)).expanduser()
            settings["model"] = f"{LOCAL}{path}" if path.exists() else self.model
        return settings


class SeasonConditionSection(ConditionSection):
    """Section `[[condition]]`: settings of the questions."""

    title: Line | None = None
    """Title on the board; by default its differences from the default condition."""

    def values(self) -> dict[str, Any]:
        """Return the keys that a condition sets in the recipe, as settings of an evaluation recipe."""
        written = self.model_fields_set - {"title"}
        return {name: getattr(self, name) for name in sorted(written)}


class SeasonBudgetSection(RecipeSection):
    """Section `[budget]`: maximum questions, cost and clips of a season; earlier runs count."""

    max_questions: Count | None = None
    """Maximum number of questions to reviewers, without baselines."""
    max_cost_usd: (
        Annotated[Decimal, Field(gt=0, le=10**9), RecipeNumberUnit("US dollars")] | None
    ) = None
    """Maximum cost of clips and answers in USD, as reported by creators and servers."""
    max_clips: Count | None = None
    """Maximum number of clips that are requested from creators."""


class SeasonRecipe(RecipeSection):
    """All settings of a season. They are public: anyone with the benchmark can repeat the season."""

    name: Line
    benchmark: Text
    layout: Text | None = None
    mapping: dict[str, Text] = Field(default={}, max_length=MAX_PARTS)
    digest: Text = ""
    """Hash of the benchmark, as `unreel arena plan` prints it."""
    protocol: Text = "reality"
    seed: Seed = 0
    split: Text | None = None
    limit: Count | None = None
    """Maximum number of scenes, sampled with `seed`; all by default."""
    floors: bool = True
    """Whether the baselines coin, always-real, metadata and motion take part."""
    creator: Annotated[tuple[CreatorRecipeSection, ...], Field(min_length=1, max_length=MAX_PARTS)]
    reviewer: Annotated[tuple[SeasonReviewerSection, ...], Field(max_length=MAX_PARTS)] = ()
    condition: Annotated[
        tuple[SeasonConditionSection, ...], Field(min_length=1, max_length=MAX_PARTS)
    ] = (SeasonConditionSection(),)
    budget: SeasonBudgetSection = SeasonBudgetSection()

    @field_validator("split")
    @classmethod
    def _no_split_is_all(cls, split: str | None) -> str | None:
        return split or None

    @field_validator("protocol")
    @classmethod
    def _check_protocol(cls, name: str) -> str:
        known = get_protocol(name).instrument.protocol
        if not get_protocol(known).tells_sides:
            playable = [other for other in list_protocol_names() if get_protocol(other).tells_sides]
            raise InvalidSettingError(
                "protocol",
                f"an answer to {known} is neither real nor generated",
                f"Name one of {', '.join(playable)}",
            )
        return known

    @model_validator(mode="after")
    def _check_entrants(self) -> "SeasonRecipe":
        _require_distinct_entries("creator", [c.stable_name for c in self.creator])
        _require_distinct_entries("condition", list(self.titles))
        keys = [r.model_dump_json(exclude={"title"}) for r in self.reviewer]
        _require_distinct_entries("reviewer", keys, shown=[r.shown for r in self.reviewer])
        if get_protocol(self.protocol).subject == "pair" and self.budget.max_questions is not None:
            raise InvalidSettingError(
                "budget.max_questions",
                "questions about pairs are not planned yet",
                "Leave it out, or ask about single clips",
            )
        if not self.reviewer and not self.floors:
            raise InvalidSettingError(
                "reviewer",
                "needs a reviewer or the baselines",
                "Add a [[reviewer]], or leave floors on",
            )
        return self

    @property
    def titles(self) -> tuple[str, ...]:
        """Return the titles of the conditions: their settings, sampling first, unless one is named.

        A condition without settings is `main`, or `as printed` if there are several.
        """
        plain = "as printed" if len(self.condition) > 1 else "main"
        titles = []
        for section in self.condition:
            values = section.values()
            parts = [str(values.pop("sampling"))] if "sampling" in values else []
            parts += [f"{key.replace('_', ' ')} {value}" for key, value in values.items()]
            titles.append(section.title or ", ".join(parts) or plain)
        return tuple(titles)

    @property
    def knobs(self) -> dict[str, dict[str, str]]:
        """Return the settings of each condition of a season, by the condition's title."""
        written = [section.model_dump(exclude={"title"}) for section in self.condition]
        return {
            title: {name: str(value) for name, value in knobs.items()}
            for title, knobs in zip(self.titles, written, strict=True)
        }

    @property
    def judges(self) -> tuple[SeasonReviewerSection, ...]:
        """Return all reviewers of a season: those in the recipe, then the other baselines."""
        named = {section.model for section in self.reviewer}
        floors = ALWAYS_THERE if self.floors else ()
        added = [SeasonReviewerSection(model=name) for name in floors if name not in named]
        return (*self.reviewer, *added)


@dataclass(frozen=True, slots=True, kw_only=True)
class Season:
    """A season as read from its file: the recipe, and the folder that its relative paths start from."""

    recipe: SeasonRecipe
    base: Path
    text: bytes
    """Content of the file."""

    @property
    def benchmark(self) -> Path:
        return self.base / Path(self.recipe.benchmark).expanduser()

    @property
    def creators(self) -> Iterator[CreatorRecipeSection]:
        """Return the creators of the season; their relative paths start at the recipe's directory."""
        return (section.resolve_paths(self.base) for section in self.recipe.creator)

    def asks(self, section: SeasonReviewerSection, benchmark: Path) -> EvalRecipe:
        """Return the evaluation recipe for questions to `section` about the clips at `benchmark`."""
        recipe = self.recipe
        return check_eval(
            {
                "benchmark": str(benchmark),
                "protocol": recipe.protocol,
                "seed": recipe.seed,
                "reviewer": section.values(self.base),
                "condition": [condition.values() for condition in recipe.condition],
            }
        )


def read_season(file: Path) -> Season:
    """Read a season from its TOML file; raise `UnreelError` with the first problem."""
    recipe = validate_recipe_sections(SeasonRecipe, read_toml_file(file, "season"))
    return Season(recipe=recipe, base=file.absolute().parent, text=file.read_bytes())


def _require_distinct_entries(what: str, keys: Sequence[str], *, shown: Sequence[str] = ()) -> None:
    for i, key in enumerate(keys):
        if key in keys[:i]:
            problem = f"{(shown or keys)[i]!r} occurs twice"
            raise InvalidSettingError(what, problem, "Keep one of them, or change what differs")


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
WORK_FOLDER = "bench"
_MAX_BYTES = 16 << 20
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
    def fitted_reviewers(self) -> tuple[EnteredReviewer, ...]:
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
        # The URL of a server, which titles of earlier releases may contain, is removed.
        titles = {e.name: remove_server_from_model_name(e.title) for e in entrants}
        counts = Counter(titles.values())
        for name, title in titles.items():
            if counts[title] > 1:
                titles[name] = name if name.startswith(title) else f"{title} ({name})"
        return titles


@dataclass(frozen=True, slots=True)
class SeasonFolder:
    """The working folder of a season: tables, files and entrants."""

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
            data = self.place.read(ENTRANTS, max_bytes=_MAX_BYTES)
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
    from unreel.arena.season.folder import read_season

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
    """Return the folder name of a reviewer's answers: title and digest of the settings."""
    return f"{make_safe_file_name(title)}-{digest('reviewer of a season', identity)[:_DIGITS]}"


def format_creator_folder_name(title: str, name: str) -> str:
    """Return the name of the directory of a creator's clips below `made/`."""
    return f"{make_safe_file_name(title)}-{digest('creator of a season', name)[:_DIGITS]}"


_MAX_RECIPE_BYTES = 1 << 20


def read_stored_season_recipe(folder: SeasonFolder) -> SeasonRecipe:
    """Return the recipe that is stored in a season's folder; its paths are those of the original file."""
    folder.require_played()
    try:
        data = folder.place.read(RECIPE, max_bytes=_MAX_RECIPE_BYTES)
        return validate_recipe_sections(SeasonRecipe, tomllib.loads(data.decode()))
    except (FileNotFoundError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnreadableSourceError(
            str(folder.path / RECIPE),
            "no recipe of a season",
            "Run the season again, which rewrites the file",
        ) from error
