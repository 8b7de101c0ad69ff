"""Benchmarks: layouts, examples, checks, masks, and the catalogue of public benchmarks and checkpoints."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unreel.api.public_benchmarks import apply_catalogue_settings, find_named_benchmark
from unreel.api.shared_settings import BenchmarkSettings, TrustSettings, parse_column_mapping
from unreel.core.command_options import Option
from unreel.core.settings import read_environment_settings

if TYPE_CHECKING:
    from unreel.benchmarks.check import BenchmarkCheckResult
    from unreel.catalogue.entries import CatalogueEntry


@dataclass(frozen=True, kw_only=True)
class CheckSettings(BenchmarkSettings):
    """Settings of `check_benchmark`."""

    path: Annotated[Path, Option(is_argument=True, kind="path")]


def check_benchmark(settings: CheckSettings) -> "BenchmarkCheckResult":
    """Check a benchmark before an evaluation; clips are not opened."""
    from unreel.benchmarks.check import check_benchmark

    if (named := find_named_benchmark(settings.path)) is not None:
        settings, _ = apply_catalogue_settings(settings, named)
    mapping = parse_column_mapping(settings.mapping) or None
    return check_benchmark(
        settings.path, settings.layout, mapping=mapping, outside=settings.allow_outside
    )


def describe_columns() -> Mapping[str, str]:
    """Return the meaning of each field that a column of a table can have."""
    from unreel.benchmarks.columns import MEANS

    return MEANS


def describe_detectable_difference(checked: "BenchmarkCheckResult") -> str:
    """Return, as text, the smallest difference between two reviewers that a benchmark can show."""
    from unreel.stats.power import DISCORDANT, N_DIFFERENCES

    if checked.detectable is None:
        return f"no difference between two reviewers: {checked.n_independent} independent clips are too few"
    return (
        f"a difference of {checked.detectable:.0f} points of accuracy or more in 8 of 10 comparisons of two reviewers "
        f"({checked.n_independent} independent clips, one reviewer alone right about {DISCORDANT:.0%} of them, "
        f"corrected for the {N_DIFFERENCES} differences of unreel compare)"
    )


def list_examples() -> Mapping[Any, Any]:
    """Return an example of each layout."""
    from unreel.benchmarks.examples import EXAMPLES

    return EXAMPLES


def write_example(layout: str, folder: Path) -> Path:
    """Write a small benchmark with synthetic clips into a new folder; return what names it."""
    from unreel.benchmarks.entry import BenchmarkLayout
    from unreel.benchmarks.examples import write_example_benchmark

    return write_example_benchmark(BenchmarkLayout(layout), folder)


@dataclass(frozen=True, kw_only=True)
class MaskSettings(TrustSettings):
    """Settings of `iter_masked_clips`."""

    folder: Annotated[Path, Option(is_argument=True, kind="folder")]


def iter_masked_clips(settings: MaskSettings) -> Iterator[tuple[bool, str]]:
    """Yield, for each clip with a mask, whether it can be used, and its row as JSON or the reason."""
    from unreel.benchmarks.entry import Rejected
    from unreel.benchmarks.localisation.masks import read_masked_clips
    from unreel.benchmarks.table_entries import convert_entry_to_record
    from unreel.media.access import open_media_reader

    with open_media_reader(read_environment_settings(), trusted=settings.trusted) as reader:
        for row in read_masked_clips(settings.folder, reader):
            if isinstance(row, Rejected):
                yield False, str(row)
            else:
                yield True, json.dumps(convert_entry_to_record(row, file_name=row.location))


def list_public_benchmarks() -> "Sequence[CatalogueEntry]":
    """Return the public benchmarks of the catalogue."""
    from unreel.catalogue.entries import list_benchmarks

    return list_benchmarks()


def get_public_benchmark(name: str) -> "CatalogueEntry":
    """Return the public benchmark `name`; raise `UnknownNameError` if there is none."""
    from unreel.catalogue.entries import get_benchmark

    return get_benchmark(name)


def list_public_models() -> "Sequence[CatalogueEntry]":
    """Return the published checkpoints of the catalogue."""
    from unreel.catalogue.entries import list_models

    return list_models()


def get_public_model(name: str) -> "CatalogueEntry":
    """Return the published checkpoint `name`; raise `UnknownNameError` if there is none."""
    from unreel.catalogue.entries import get_model

    return get_model(name)
