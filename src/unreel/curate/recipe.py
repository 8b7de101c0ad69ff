"""What a curation does: defaults, then a TOML file, then flags; unknown keys are refused.

A section that is absent is a step that is not taken.
"""

import tomllib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from unreel.benchmarks.columns import KNOWN
from unreel.core.document import RECIPE_BYTES, read_toml
from unreel.core.errors import InvalidSettingError
from unreel.core.judgement import Label
from unreel.core.trace import Category
from unreel.media.normalise import NormalForm
from unreel.recipes.reading import check_sections
from unreel.recipes.section import (
    MOST_PARTS,
    Connections,
    Count,
    Deadline,
    Exact,
    MaxTokens,
    Seconds,
    Section,
    Seed,
    Text,
)

SPLITS: Final = ("train", "val", "test")
CATEGORIES: Final = tuple(category for category in Category if category is not Category.OTHER)


Share = Annotated[int, Field(ge=0, le=1_000_000)]


class SourceSection(Section):
    """`[source]` or `[[source]]`: where clips come from, and what holds for each of them.

    `label`, `creator`, `licence`, `source` and `group` stand in where the source itself is silent.
    """

    path: Text
    """A folder, a table (CSV, JSONL, Parquet) or an `s3://` prefix; relative to the recipe's file."""
    name: Text = ""
    """Goes before the names of its clips, for sources whose names meet."""
    layout: Text | None = None
    """As in `unreel eval`; found by itself. `files` takes every video below `path`."""
    columns: dict[str, Text] = Field(default={}, max_length=MOST_PARTS)
    """The column of a field, for a table that has names of its own."""
    label: Label | None = None
    creator: Text = ""
    licence: Text = ""
    source: Text = ""
    group: Text = ""
    limit: Count | None = None
    """The first clips only."""

    @model_validator(mode="after")
    def _fields_are_known(self) -> "SourceSection":
        for field in self.columns:
            if field not in KNOWN:
                setting, problem = "columns", f"no field of a clip is named {field!r}"
                raise InvalidSettingError(setting, problem, f"Known: {', '.join(sorted(KNOWN))}")
        return self


class DuplicatesSection(Section):
    """`[duplicates]`: clips that show the same, however they were encoded, scaled or stamped."""

    near: Literal["drop", "keep"] = "drop"
    """`drop` keeps the largest of those with one label; `keep` keeps all, in one split."""


class SplitSection(Section):
    """`[split]`: single-theme pieces, cut where the colours of two frames differ too much."""

    detector: Literal["colour", "transnetv2"] = "colour"
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Of `colour`: Bhattacharyya distance of two frames' histograms."""
    shortest_s: Seconds = Fraction(1)


class CropSection(Section):
    """`[crop]`: filled borders go."""


class LengthsSection(Section):
    """`[lengths]`: real clips are trimmed until they last as generated ones do."""


class ScreenSection(Section):
    """`[screen]`: what stays. `screens` names them, each with its settings."""

    screens: dict[str, dict[str, Any]] = Field(default={"motion": {}}, max_length=MOST_PARTS)
    decisions: Text | None = None
    """JSONL of people's decisions, lines of `queue.jsonl`; relative to the recipe's file."""


class WatermarkSection(Section):
    """`[watermark]`: overlaid texts and logos are found and written down."""

    texts: bool = True
    """Read texts; costs about a second of one core for each of several frames."""
    clean: bool = False
    """Give every clip a copy without its marks, for `unreel eval --condition watermark=removed`."""


class DescribeSection(Section):
    """`[describe]`: a vision model tells the story of each real clip, from 8 frames."""

    model: Text
    """`provider/name` or `provider/name@URL`, as in `unreel eval`."""
    max_tokens: MaxTokens = 1024
    max_connections: Connections = 16
    deadline_s: Deadline = 180.0


class ClusterSection(Section):
    """`[cluster]`: stories are grouped by meaning, and the same number is kept of each group."""


class AuditSection(Section):
    """`[audit]`: whether the labels can be told without looking; a leak forbids the freeze."""

    texts: bool = True
    """Read texts on clips whose marks no earlier step looked for."""


class InjectSection(Section):
    """`[inject]`: real clips gain twins with one known trace each."""

    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Of the real clips."""
    categories: Annotated[tuple[Category, ...], Field(min_length=1, max_length=MOST_PARTS)] = (
        CATEGORIES
    )
    strength: Annotated[float, Field(gt=0, le=1)] = 0.7

    @model_validator(mode="after")
    def _categories_can_be_injected(self) -> "InjectSection":
        if Category.OTHER in self.categories:
            setting, problem = "inject.categories", "nothing is injected as 'other'"
            raise InvalidSettingError(setting, problem, f"Known: {', '.join(CATEGORIES)}")
        return self


class NormaliseSection(Section):
    """`[normalise]`: one form for every clip, so that the encoding tells nothing of its origin."""

    width: int = 1280
    height: int = 720
    rate: Exact = Fraction(24)
    crf: int = 18
    sound: Literal["dropped", "kept"] = "dropped"

    @property
    def form(self) -> NormalForm:
        """The form as `media` knows it."""
        return NormalForm(
            width=self.width,
            height=self.height,
            rate=self.rate,
            crf=self.crf,
            sound=self.sound,
        )


class FreezeSection(Section):
    """`[freeze]`: what is published."""

    version: Text = "0.1.0"
    shares: tuple[Share, Share, Share] = (8, 1, 1)
    """Parts of train, val and test."""
    first_frames: bool = False
    """Publish the first frame of each clip as a picture too."""
    about: Text = ""
    """A paragraph for the data card."""

    @model_validator(mode="after")
    def _something_is_shared(self) -> "FreezeSection":
        if not sum(self.shares):
            setting, problem = "freeze.shares", "no split gets anything"
            raise InvalidSettingError(setting, problem, "Give parts such as [8, 1, 1]")
        return self


def _listed(value: object) -> object:
    return [value] if isinstance(value, Mapping) else value


class CurateRecipe(Section):
    """Everything that decides what a curation gives. It is stored with its result."""

    name: Text
    seed: Seed = 0
    source: Annotated[
        tuple[SourceSection, ...],
        Field(min_length=1, max_length=MOST_PARTS),
        BeforeValidator(_listed),
    ]
    duplicates: DuplicatesSection | None = None
    split: SplitSection | None = None
    crop: CropSection | None = None
    lengths: LengthsSection | None = None
    screen: ScreenSection | None = None
    watermark: WatermarkSection | None = None
    inject: InjectSection | None = None
    normalise: NormaliseSection | None = None
    describe: DescribeSection | None = None
    cluster: ClusterSection | None = None
    audit: AuditSection | None = None
    freeze: FreezeSection | None = None

    @model_validator(mode="after")
    def _stories_come_before_groups(self) -> "CurateRecipe":
        if self.cluster is not None and self.describe is None:
            setting, problem = "cluster", "there are no stories to group"
            raise InvalidSettingError(setting, problem, "Add [describe] with a model")
        return self


def read_recipe(file: Path, changes: Sequence[str] = ()) -> CurateRecipe:
    """Defaults below `file` below `changes`, each `section.key=VALUE` with a value in TOML's spelling."""
    values = read_toml(file, "recipe")
    for change in changes:
        _apply(change, values)
    return check_recipe(values)


def check_recipe(values: object) -> CurateRecipe:
    """The recipe that `values` make, or the first thing that is wrong with them."""
    return check_sections(CurateRecipe, values, typed=lambda key: f"--set {key}=VALUE")


def _apply(change: str, values: dict[str, Any]) -> None:
    path, equals, text = change.partition("=")
    *sections, key = path.strip().split(".")
    if not equals or not key:
        setting, problem = "--set", f"cannot use {change!r}"
        raise InvalidSettingError(setting, problem, "Write SECTION.KEY=VALUE")
    place = values
    for section in sections:
        place = place.setdefault(section, {})
        if not isinstance(place, dict):
            setting, problem = path, "is no section with keys"
            raise InvalidSettingError(setting, problem, "Change it in the file")
    place[key] = _toml_value(text)


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text[:RECIPE_BYTES]}")["value"]
    except (ValueError, RecursionError):
        return text.strip()  # a plain word needs no quotes on a command line
