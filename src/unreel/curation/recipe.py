"""Recipe of a curation: all settings, from defaults, a TOML file and options.

Unknown keys are rejected. A step whose section is missing is not run.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from unreel.benchmarks.columns import KNOWN
from unreel.core.errors import InvalidSettingError
from unreel.core.input_files import read_toml_file
from unreel.core.judgement import Label
from unreel.core.trace import Category
from unreel.curation.segment import CurationGlobalSettings
from unreel.media.render import NormalisedClipFormat
from unreel.recipes.validation import (
    MAX_PARTS,
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
    """Whether to recognise text on clips that no earlier step searched for watermarks."""


class ClusterRecipeSection(RecipeSection):
    """`[cluster]`: groups descriptions by meaning and keeps the same number of clips of each group."""


class CropRecipeSection(RecipeSection):
    """`[crop]`: crops the filled borders of clips."""


class DescribeRecipeSection(ReviewerSection):
    """`[describe]`: a vision model describes each real clip from 8 frames."""

    max_tokens: MaxTokens = 1024
    """Maximum number of tokens of a description."""
    deadline_s: Deadline = 180.0
    """Timeout of one question, including retries."""


class DuplicatesRecipeSection(RecipeSection):
    """`[duplicates]`: finds clips with the same content, also re-encoded, scaled or with overlays."""

    near: Literal["drop", "keep"] = "drop"
    """Near-duplicates: `drop` keeps the largest clip of each label, `keep` keeps all of them in one split."""


SPLITS = ("train", "val", "test")
Share = Annotated[int, Field(ge=0, le=1_000_000)]
Year = Annotated[int, Field(ge=1900, le=9999)]


class CitationRecipeSection(RecipeSection):
    """`[freeze.citation]`: citation of the benchmark; the card lists missing fields."""

    authors: Annotated[tuple[Text, ...], Field(max_length=MAX_PARTS)] = ()
    """Authors, each as "Family, Given", or the name of a group."""
    year: Year | None = None
    """Year of publication."""
    url: Text = ""
    """URL at which the benchmark is published."""
    doi: Text = ""
    """DOI of the benchmark, such as 10.5281/zenodo.1."""
    bibtex: Text = ""
    """Complete BibTeX entry, used instead of the entry that is built from the other keys."""


class FreezeRecipeSection(RecipeSection):
    """`[freeze]`: content of the frozen benchmark."""

    version: Text = "0.1.0"
    """Version of the benchmark."""
    shares: Annotated[tuple[Share, Share, Share], RecipeNumberUnit("parts")] = (8, 1, 1)
    """Relative sizes of the splits train, val and test; a split of size 0 is omitted."""
    labels: Annotated[tuple[Label, ...], Field(max_length=len(Label))] = tuple(Label)
    """Labels that every split must contain; a benchmark of one label names only that label."""
    first_frames: bool = False
    """Whether to also publish the first frame of each clip, as a JPEG image."""
    media: Literal["copy", "in_place"] = "copy"
    """`copy` copies the media files; `in_place` lists their original locations, for sets too large to store twice."""
    about: Text = ""
    """Paragraph about the benchmark for the data card."""
    citation: CitationRecipeSection | None = None
    """Citation of the benchmark."""

    @property
    def in_place(self) -> bool:
        """Return whether the manifest refers to the original media files, which are then not copied."""
        return self.media == "in_place"

    @model_validator(mode="after")
    def _something_is_shared(self) -> "FreezeRecipeSection":
        if not sum(self.shares):
            raise InvalidSettingError(
                "freeze.shares", "no split gets anything", "Give parts such as [8, 1, 1]"
            )
        return self


CATEGORIES = tuple(category for category in Category if category is not Category.OTHER)


class InjectRecipeSection(RecipeSection):
    """`[inject]`: adds, for real clips, a twin with one known trace."""

    share: Annotated[float, Field(gt=0, le=1), RecipeNumberUnit("part")] = 1.0
    """Share of real clips that get a twin with a trace."""
    categories: Annotated[tuple[Category, ...], Field(min_length=1, max_length=MAX_PARTS)] = (
        CATEGORIES
    )
    """Categories of traces; each twin gets the first one, in a random order, that suits the clip."""
    strength: Annotated[float, Field(gt=0, le=1)] = 0.7
    """Visibility of the injected trace; 1 is immediately visible."""

    @model_validator(mode="after")
    def _categories_can_be_injected(self) -> "InjectRecipeSection":
        if Category.OTHER in self.categories:
            raise InvalidSettingError(
                "inject.categories",
                "nothing is injected as 'other'",
                f"Known: {', '.join(CATEGORIES)}",
            )
        return self


class LengthsRecipeSection(RecipeSection):
    """`[lengths]`: trims real clips to the lengths of generated clips."""


class NormaliseRecipeSection(RecipeSection):
    """`[normalise]`: converts every clip to one format, so that the encoding does not reveal its origin."""

    width: Annotated[int, RecipeNumberUnit("pixels")] = 1280
    """Width of the output, an even number from 16 to 4096; pictures are fitted inside and centred on black."""
    height: Annotated[int, RecipeNumberUnit("pixels")] = 720
    """Height of the output, an even number from 16 to 4096."""
    rate: Annotated[Exact, RecipeNumberUnit("frames a second")] = Fraction(24)
    """Frame rate of the output, above 0 and at most 240, such as 24 or "30000/1001"."""
    crf: int = 18
    """Quality of x264 (constant rate factor), from 0 (best) to 51."""
    sound: Literal["dropped", "kept"] = "dropped"
    """`dropped` removes the sound; `kept` gives every clip a sound track, silent if the clip has no sound."""

    @model_validator(mode="after")
    def _form_can_be_encoded(self) -> "NormaliseRecipeSection":
        _ = self.form
        return self

    @property
    def form(self) -> NormalisedClipFormat:
        """Return the video format as a `NormalisedClipFormat` of `unreel.media`."""
        return NormalisedClipFormat(
            width=self.width, height=self.height, rate=self.rate, crf=self.crf, sound=self.sound
        )


class ScreeningRecipeSection(RecipeSection):
    """`[screen]`: removes segments that cannot be judged; human decisions take precedence."""

    screens: dict[str, dict[str, Any]] = Field(default={"motion": {}}, max_length=MAX_PARTS)
    """Screens to apply by name, each with its settings in `[screen.screens.NAME]`."""
    decisions: Text | None = None
    """Path of a JSONL file of human decisions, lines of `queue.jsonl`, relative to the recipe's file."""


class SourceRecipeSection(RecipeSection):
    """`[source]` or `[[source]]`: a source of clips, and default values for its clips.

    `label`, `creator`, `licence`, `source` and `group` are fallbacks for values that are missing in
    the source.
    """

    path: Text
    """Path of a folder, a table (CSV, JSONL, Parquet) or an `s3://` prefix, relative to the recipe's file."""
    name: Text = ""
    """Prefix of the names of the source's clips, to distinguish equal names in several sources."""
    layout: Text | None = None
    """Layout of the source, as in `unreel eval`, or `files` for all videos below `path`; detected by default."""
    columns: dict[str, Text] = Field(default={}, max_length=MAX_PARTS)
    """Mapping of fields to columns of the table, for column names that are not detected."""
    label: Label | None = None
    """Label of clips in a table without labels, or of all videos in the layout `files`."""
    creator: Text = ""
    """Creator of generated clips for which the source names none."""
    licence: Text = ""
    """Licence of clips for which the source names none, such as "CC BY 4.0"."""
    source: Text = ""
    """Origin of clips for which the source names none, such as a URL."""
    group: Text = ""
    """Group of clips that have none; clips of one group show the same scene and share a split."""
    limit: Annotated[Count, RecipeNumberUnit("clips")] | None = None
    """Maximum number of clips; only the first ones of the source are read."""

    @model_validator(mode="after")
    def _fields_are_known(self) -> "SourceRecipeSection":
        for field in self.columns:
            if field not in KNOWN:
                raise InvalidSettingError(
                    "columns",
                    f"no field of a clip is named {field!r}",
                    f"Known: {', '.join(sorted(KNOWN))}",
                )
        return self


class ShotSplitRecipeSection(RecipeSection):
    """`[split]`: splits clips into shots at the detected cuts."""

    detector: Literal["colour", "transnetv2"] = "colour"
    """Method of cut detection; `transnetv2` needs `unreel[transnet]`."""
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Threshold of `colour`: Bhattacharyya distance of two frames' histograms above which there is a cut."""
    shortest_s: Seconds = Fraction(1)
    """Minimum length of a shot; shorter shots are excluded."""


class WatermarkRecipeSection(RecipeSection):
    """`[watermark]`: finds and records overlaid texts and logos."""

    texts: bool = True
    """Whether to recognise text, which takes about a second of one core for each of several frames."""
    clean: bool = False
    """Whether to make a copy of every clip without watermarks, for `unreel eval --condition watermark=removed`."""


def _wrap_in_list(value: object) -> object:
    return [value] if isinstance(value, Mapping) else value


class CurationRecipe(CurationGlobalSettings):
    """Complete recipe of a curation: all settings that determine its result."""

    source: Annotated[
        tuple[SourceRecipeSection, ...],
        Field(min_length=1, max_length=MAX_PARTS),
        BeforeValidator(_wrap_in_list),
    ]
    duplicates: DuplicatesRecipeSection | None = None
    split: ShotSplitRecipeSection | None = None
    crop: CropRecipeSection | None = None
    screen: ScreeningRecipeSection | None = None
    lengths: LengthsRecipeSection | None = None
    watermark: WatermarkRecipeSection | None = None
    inject: InjectRecipeSection | None = None
    normalise: NormaliseRecipeSection | None = None
    describe: DescribeRecipeSection | None = None
    cluster: ClusterRecipeSection | None = None
    audit: AuditRecipeSection | None = None
    freeze: FreezeRecipeSection | None = None

    @model_validator(mode="after")
    def _stories_come_before_groups(self) -> "CurationRecipe":
        if self.cluster is not None and self.describe is None:
            raise InvalidSettingError(
                "cluster", "needs descriptions to group", "Add [describe] with a model"
            )
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
