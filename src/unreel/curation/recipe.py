"""Settings of a curation: defaults, then a TOML file, then options; unknown keys are rejected.

A section that is absent is a step that is not taken. Its settings are in the folder of its name.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from unreel.core.document import read_toml
from unreel.core.errors import InvalidSettingError
from unreel.curation.audit.section import AuditSection
from unreel.curation.cluster.section import ClusterSection
from unreel.curation.crop.section import CropSection
from unreel.curation.describe.section import DescribeSection
from unreel.curation.duplicates.section import DuplicatesSection
from unreel.curation.freeze.section import FreezeSection
from unreel.curation.inject.section import InjectSection
from unreel.curation.lengths.section import LengthsSection
from unreel.curation.normalise.section import NormaliseSection
from unreel.curation.screen.section import ScreenSection
from unreel.curation.source.section import SourceSection
from unreel.curation.split.section import SplitSection
from unreel.curation.state import RecipeHead
from unreel.curation.watermark.section import WatermarkSection
from unreel.recipes.changing import apply_change
from unreel.recipes.check import check_sections
from unreel.recipes.section import MOST_PARTS


def _listed(value: object) -> object:
    return [value] if isinstance(value, Mapping) else value


class CurateRecipe(RecipeHead):
    """Everything that decides what a curation gives. It is stored with its result."""

    source: Annotated[
        tuple[SourceSection, ...],
        Field(min_length=1, max_length=MOST_PARTS),
        BeforeValidator(_listed),
    ]
    duplicates: DuplicatesSection | None = None
    split: SplitSection | None = None
    crop: CropSection | None = None
    screen: ScreenSection | None = None
    lengths: LengthsSection | None = None
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
        apply_change(change, values)
    return check_recipe(values)


def check_recipe(values: object) -> CurateRecipe:
    """The recipe that `values` make, or the first thing that is wrong with them."""
    return check_sections(CurateRecipe, values, typed=lambda key: f"--set {key}=VALUE")
