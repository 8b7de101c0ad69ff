"""The settings of `[source]`."""

from typing import Annotated

from pydantic import Field, model_validator

from unreel.benchmarks.columns import KNOWN
from unreel.core.errors import InvalidSettingError
from unreel.core.judgement import Label
from unreel.recipes.section import MOST_PARTS, Count, NumberUnit, RecipeSection, Text


class SourceSection(RecipeSection):
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
    """Of clips whose table or folder does not tell."""
    creator: Text = ""
    """Who made the generated clips, where the source is silent."""
    licence: Text = ""
    """Of clips whose source names none, such as "CC BY 4.0"."""
    source: Text = ""
    """Where they were found, such as an address."""
    group: Text = ""
    """Clips of one group show the same scene and share a split."""
    limit: Annotated[Count, NumberUnit("clips")] | None = None
    """The first clips only."""

    @model_validator(mode="after")
    def _fields_are_known(self) -> "SourceSection":
        for field in self.columns:
            if field not in KNOWN:
                setting, problem = "columns", f"no field of a clip is named {field!r}"
                raise InvalidSettingError(setting, problem, f"Known: {', '.join(sorted(KNOWN))}")
        return self
