"""Options for reading a benchmark: `--layout` and `--map`."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from unreel.benchmarks.layout import BenchmarkLayout
from unreel.core.errors import InvalidSettingError

F = TypeVar("F", bound=Callable[..., Any])
LAYOUTS: Final = click.Choice([layout.value for layout in BenchmarkLayout])


def layout_option(command: F) -> F:
    """Add `--layout` to a command that reads a benchmark."""
    return click.option(
        "--layout",
        type=LAYOUTS,
        help="Layout of the benchmark on disk; found automatically if only one fits.",
    )(command)


def map_option(command: F) -> F:
    """Add `--map` to a command that reads a benchmark; it arrives as `mapping`."""
    return click.option(
        "--map",
        "mapping",
        multiple=True,
        metavar="FIELD=COLUMN",
        help="Column of the benchmark's table for a field, for example label=kind. Repeatable.",
    )(command)


def read_mapping(pairs: tuple[str, ...]) -> Mapping[str, str]:
    """Field to column."""
    parts = {pair: pair.partition("=") for pair in pairs}
    for pair, (field, _, column) in parts.items():
        if not (field and column):
            option, remedy = "--map", "Write FIELD=COLUMN, for example label=kind"
            raise InvalidSettingError(option, f"cannot use {pair!r}", remedy)
    return {field: column for field, _, column in parts.values()}
