"""Recipe of a curation: all settings, from defaults, a TOML file and options.

Unknown keys are rejected. A step whose section is missing is not run.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from unreel.benchmarks.columns import KNOWN
from unreel.core.errors import InvalidSettingError
from unreel.core.input_files import read_toml_file
from unreel.core.judgement import Label
from unreel.core.trace import Category
from unreel.curation.state import CurationGlobalSettings
from unreel.media.normalise import NormalisedClipFormat
from unreel.recipes.validation import (
    MOST_PARTS,
    Count,
    Deadline,
    Exact,
    MaxTokens,
    RecipeNumberUnit,
    RecipeSection,
    Seconds,
    Text,
    apply_recipe_change,
    validate_recipe_sections,
)
from unreel.reviewers.config import ReviewerSection


class AuditRecipeSection(RecipeSection):
    """`[audit]`: tests whether file properties reveal the labels; a leak prevents the freeze."""

    texts: bool = True
    """Read texts on clips whose marks no earlier step looked for."""


class ClusterRecipeSection(RecipeSection):
    """`[cluster]`: groups descriptions by meaning and keeps equally many clips of each group."""


class CropRecipeSection(RecipeSection):
    """`[crop]`: crops the filled borders of clips."""


class DescribeRecipeSection(ReviewerSection):
    """`[describe]`: a vision model describes each real clip from 8 frames."""

    max_tokens: MaxTokens = 1024
    """Most tokens of a story."""
    deadline_s: Deadline = 180.0
    """For one question, retries included."""


class DuplicatesRecipeSection(RecipeSection):
    """`[duplicates]`: finds clips with the same content, also re-encoded, scaled or with overlays."""

    near: Literal["drop", "keep"] = "drop"
    """`drop` keeps the largest of those with one label; `keep` keeps all, in one split."""


SPLITS: Final = ("train", "val", "test")
Share = Annotated[int, Field(ge=0, le=1_000_000)]
Year = Annotated[int, Field(ge=1900, le=9999)]


class CitationRecipeSection(RecipeSection):
    """`[freeze.citation]`: citation of the benchmark; the card lists missing fields."""

    authors: Annotated[tuple[Text, ...], Field(max_length=MOST_PARTS)] = ()
    """Each as "Family, Given", or the name of a group."""
    year: Year | None = None
    """In which it is published."""
    url: Text = ""
    """Where it is published."""
    doi: Text = ""
    """Its DOI, such as 10.5281/zenodo.1."""
    bibtex: Text = ""
    """A whole entry, in place of the one that is made from the other keys."""


class FreezeRecipeSection(RecipeSection):
    """`[freeze]`: content of the frozen benchmark."""

    version: Text = "0.1.0"
    """Of the benchmark."""
    shares: Annotated[tuple[Share, Share, Share], RecipeNumberUnit("parts")] = (8, 1, 1)
    """Parts of train, val and test; a split with 0 is not made."""
    labels: Annotated[tuple[Label, ...], Field(max_length=len(Label))] = tuple(Label)
    """What every split must hold; a set of one label says so here."""
    first_frames: bool = False
    """Publish the first frame of each clip as a picture too."""
    media: Literal["copy", "in_place"] = "copy"
    """`in_place` copies nothing: the manifest names where the files lie, for sets too large to hold twice."""
    about: Text = ""
    """A paragraph for the data card."""
    citation: CitationRecipeSection | None = None
    """How it is to be cited."""

    @property
    def in_place(self) -> bool:
        """Return whether the manifest refers to the original media files, which are then not copied."""
        return self.media == "in_place"

    @model_validator(mode="after")
    def _something_is_shared(self) -> "FreezeRecipeSection":
        if not sum(self.shares):
            setting, problem = "freeze.shares", "no split gets anything"
            raise InvalidSettingError(setting, problem, "Give parts such as [8, 1, 1]")
        return self


CATEGORIES: Final = tuple(category for category in Category if category is not Category.OTHER)


class InjectRecipeSection(RecipeSection):
    """`[inject]`: adds, for real clips, a twin with one known trace."""

    share: Annotated[float, Field(gt=0, le=1), RecipeNumberUnit("part")] = 1.0
    """Of the real clips, that gain a twin."""
    categories: Annotated[tuple[Category, ...], Field(min_length=1, max_length=MOST_PARTS)] = (
        CATEGORIES
    )
    """What may go wrong; one is drawn for each twin."""
    strength: Annotated[float, Field(gt=0, le=1)] = 0.7
    """How plain the trace is: 1 is seen at once."""

    @model_validator(mode="after")
    def _categories_can_be_injected(self) -> "InjectRecipeSection":
        if Category.OTHER in self.categories:
            setting, problem = "inject.categories", "nothing is injected as 'other'"
            raise InvalidSettingError(setting, problem, f"Known: {', '.join(CATEGORIES)}")
        return self


class LengthsRecipeSection(RecipeSection):
    """`[lengths]`: trims real clips to the lengths of generated clips."""


class NormaliseRecipeSection(RecipeSection):
    """`[normalise]`: one format for every clip, so that the encoding does not reveal its origin."""

    width: Annotated[int, RecipeNumberUnit("pixels")] = 1280
    """Even; the picture is fitted inside and centred on black."""
    height: Annotated[int, RecipeNumberUnit("pixels")] = 720
    """Even."""
    rate: Annotated[Exact, RecipeNumberUnit("frames a second")] = Fraction(24)
    """Such as 24 or "30000/1001"."""
    crf: int = 18
    """Quality of x264, 0 (best) to 51."""
    sound: Literal["dropped", "kept"] = "dropped"
    """`kept` gives every clip a track, silent where the clip was mute."""

    @model_validator(mode="after")
    def _form_can_be_encoded(self) -> "NormaliseRecipeSection":
        _ = self.form
        return self

    @property
    def form(self) -> NormalisedClipFormat:
        """Return the video format as a `NormalisedClipFormat` of `unreel.media`."""
        return NormalisedClipFormat(
            width=self.width,
            height=self.height,
            rate=self.rate,
            crf=self.crf,
            sound=self.sound,
        )


class ScreeningRecipeSection(RecipeSection):
    """`[screen]`: removes segments that cannot be judged; human decisions take precedence."""

    screens: dict[str, dict[str, Any]] = Field(default={"motion": {}}, max_length=MOST_PARTS)
    """By name, each with its settings below `[screen.screens.NAME]`."""
    decisions: Text | None = None
    """JSONL of people's decisions, lines of `queue.jsonl`; relative to the recipe's file."""


class SourceRecipeSection(RecipeSection):
    """`[source]` or `[[source]]`: a source of clips, and default values for its clips.

    `label`, `creator`, `licence`, `source` and `group` are fallbacks for values that are missing in
    the source.
    """

    path: Text
    """A folder, a table (CSV, JSONL, Parquet) or an `s3://` prefix; relative to the recipe's file."""
    name: Text = ""
    """Goes before the names of its clips, for sources whose names meet."""
    layout: Text | None = None
    """As in `unreel eval`; detected automatically. `files` takes every video below `path`."""
    columns: dict[str, Text] = Field(default={}, max_length=MOST_PARTS)
    """The column of a field, for a table that has names of its own."""
    label: Label | None = None
    """Label of clips whose table or folder does not give it."""
    creator: Text = ""
    """Who made the generated clips, where the source is silent."""
    licence: Text = ""
    """Of clips whose source names none, such as "CC BY 4.0"."""
    source: Text = ""
    """Where they were found, such as an address."""
    group: Text = ""
    """Clips of one group show the same scene and share a split."""
    limit: Annotated[Count, RecipeNumberUnit("clips")] | None = None
    """The first clips only."""

    @model_validator(mode="after")
    def _fields_are_known(self) -> "SourceRecipeSection":
        for field in self.columns:
            if field not in KNOWN:
                setting, problem = "columns", f"no field of a clip is named {field!r}"
                raise InvalidSettingError(setting, problem, f"Known: {', '.join(sorted(KNOWN))}")
        return self


class SpliceSection(RecipeSection):
    """`[splice]`: joins real clips to long videos with generated segments, in the format of `[normalise]`."""

    length_s: Annotated[Seconds, Field(ge=1, le=3600)] = Fraction(180)
    """Of each video."""
    segments: Annotated[Count, Field(le=100), RecipeNumberUnit("segments")] = 3
    """At most so many generated segments in a video."""
    share: Annotated[float, Field(gt=0, le=1), RecipeNumberUnit("part")] = 0.5
    """Of the videos, that get generated segments; the others are made of real clips alone."""


class ShotSplitRecipeSection(RecipeSection):
    """`[split]`: cuts clips into shots, where the colours of two consecutive frames differ too much."""

    detector: Literal["colour", "transnetv2"] = "colour"
    """What finds cuts; `transnetv2` needs `unreel[transnet]`."""
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Of `colour`: Bhattacharyya distance of two frames' histograms."""
    shortest_s: Seconds = Fraction(1)
    """Shorter pieces are excluded."""


class WatermarkRecipeSection(RecipeSection):
    """`[watermark]`: finds and records overlaid texts and logos."""

    texts: bool = True
    """Read texts; costs about a second of one core for each of several frames."""
    clean: bool = False
    """Give every clip a copy without its marks, for `unreel eval --condition watermark=removed`."""


def _wrap_in_list(value: object) -> object:
    return [value] if isinstance(value, Mapping) else value


class CurationRecipe(CurationGlobalSettings):
    """Complete recipe of a curation: all settings that determine its result."""

    source: Annotated[
        tuple[SourceRecipeSection, ...],
        Field(min_length=1, max_length=MOST_PARTS),
        BeforeValidator(_wrap_in_list),
    ]
    duplicates: DuplicatesRecipeSection | None = None
    split: ShotSplitRecipeSection | None = None
    crop: CropRecipeSection | None = None
    screen: ScreeningRecipeSection | None = None
    lengths: LengthsRecipeSection | None = None
    watermark: WatermarkRecipeSection | None = None
    inject: InjectRecipeSection | None = None
    splice: SpliceSection | None = None
    normalise: NormaliseRecipeSection | None = None
    describe: DescribeRecipeSection | None = None
    cluster: ClusterRecipeSection | None = None
    audit: AuditRecipeSection | None = None
    freeze: FreezeRecipeSection | None = None

    @model_validator(mode="after")
    def _stories_come_before_groups(self) -> "CurationRecipe":
        if self.cluster is not None and self.describe is None:
            setting, problem = "cluster", "there are no stories to group"
            raise InvalidSettingError(setting, problem, "Add [describe] with a model")
        return self

    @model_validator(mode="after")
    def _spliced_videos_have_a_format(self) -> "CurationRecipe":
        if self.splice is not None and self.normalise is None:
            setting, problem = "splice", "the videos have no format"
            raise InvalidSettingError(setting, problem, "Add [normalise]")
        return self


def read_curation_recipe(file: Path, changes: Sequence[str] = ()) -> CurationRecipe:
    """Read the recipe in `file`, with defaults, and apply `changes`: `section.key=VALUE` in TOML syntax."""
    values = read_toml_file(file, "recipe")
    for change in changes:
        apply_recipe_change(change, values)
    return parse_curation_recipe(values)


def parse_curation_recipe(values: object) -> CurationRecipe:
    """Parse `values` as a curation recipe; raise `InvalidSettingError` if one is invalid."""
    return validate_recipe_sections(CurationRecipe, values, typed=lambda key: f"--set {key}=VALUE")
