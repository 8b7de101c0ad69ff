"""Settings that several commands share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from unreel.core.command_options import Option
from unreel.core.errors import InvalidSettingError

Engine = Literal["local", "ray"]
"""Name of an execution engine."""


@dataclass(frozen=True, kw_only=True)
class TrustSettings:
    """Settings of a command that opens clips."""

    trusted: bool = False
    """Decode video files without the sandbox, in the process of this command. Use it only for clips that you trust."""


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Settings of a command that reads tables of clips."""

    allow_outside: bool = False
    """Allow tables of clips to name files outside the folder of the table. Use it only for tables that you trust."""


@dataclass(frozen=True, kw_only=True)
class LayoutSettings:
    """Settings of a command that detects the layout of a benchmark."""

    layout: Annotated[str | None, Option(kind="layout")] = None
    """File layout of the benchmark; `unreel benchmarks` lists all layouts.  [default: detected]"""


@dataclass(frozen=True, kw_only=True)
class BenchmarkSettings(LayoutSettings, TableSettings):
    """Settings of a command that reads a benchmark of any layout."""

    mapping: Annotated[tuple[str, ...], Option(name="--map", metavar="FIELD=COLUMN")] = ()
    """Table column from which a field of the benchmark is read: `label=kind` reads the label of each clip from the column `kind`. Repeatable."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Settings of a command that runs a job over many clips."""

    engine: Engine = "local"
    """Execution engine. local: this process; ray: Ray Data (needs the extra `ray`)."""


@dataclass(frozen=True, kw_only=True)
class BoxSettings:
    """Settings of a command that reads boxes of a model."""

    box_space: Annotated[str | None, Option(metavar="SPACE")] = None
    """Coordinate space of the model's boxes: pixel, unit (0 to 1), permille (0 to 1000), 'model-input WxH' (pixels of the resized frame), or 'resized MIN-MAX' (the same, for a resize to between MIN and MAX pixels; only for new questions)."""


@dataclass(frozen=True, kw_only=True)
class ResampleSettings:
    """Settings of a command that resamples scenes."""

    resamples: Annotated[int | None, Option(low=100)] = None
    """Number of bootstrap resamples of the scenes, for the confidence intervals.  [default: 2000]"""


def parse_condition(text: str | None) -> dict[str, str]:
    """Parse `--condition`: NAME=VALUE pairs, separated by commas."""
    parts = [part.partition("=") for part in text.split(",")] if text else []
    if not all(name and value for name, _, value in parts):
        raise InvalidSettingError(
            "--condition",
            f"cannot use {text!r}",
            "Write NAME=VALUE,NAME=VALUE, for example sampling=paper-8",
        )
    return {name: value for name, _, value in parts}


def parse_column_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Parse FIELD=COLUMN pairs into a mapping from field to column."""
    parts = {pair: pair.partition("=") for pair in pairs}
    for pair, (field, _, column) in parts.items():
        if not (field and column):
            raise InvalidSettingError(
                "--map", f"cannot use {pair!r}", "Write FIELD=COLUMN, for example label=kind"
            )
    return {field: column for field, _, column in parts.values()}
