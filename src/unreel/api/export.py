"""Exports: a benchmark as a task of another evaluation kit, or a run as rows."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from unreel.api.runs import StoredRunSettings, open_noted_run
from unreel.api.shared_settings import (
    BenchmarkSettings,
    BoxSettings,
    TrustSettings,
    parse_column_mapping,
)
from unreel.core.command_options import Option
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreadableSourceError
from unreel.core.question import Marks
from unreel.core.registry import LazyImport, NamedObjectRegistry, needs_extra
from unreel.core.settings import read_environment_settings
from unreel.protocols.protocol import Mode, get_protocol

if TYPE_CHECKING:
    from unreel.benchmarks.export.question_writer import BenchmarkExportResult

KITS: NamedObjectRegistry[Any] = NamedObjectRegistry(
    "kit",
    {
        "lmms-eval": LazyImport("unreel.benchmarks.export.lmms_eval:export_lmms_eval"),
        "vlmevalkit": LazyImport("unreel.benchmarks.export.vlmevalkit:export_vlmevalkit"),
    },
)
ROW_FORMATS = ("csv", "jsonl", "parquet")
WHOLE = "whole"
"""Sampling plan that exports the complete video files."""


@dataclass(frozen=True, kw_only=True)
class ExportSettings(BenchmarkSettings, StoredRunSettings, BoxSettings, TrustSettings):
    """Settings of `export_benchmark` and `export_run`."""

    source: Annotated[str, Option(is_argument=True, kind="run")]
    to: Literal["lmms-eval", "vlmevalkit", "csv", "jsonl", "parquet"]
    """Output format. lmms-eval, vlmevalkit: a benchmark as a task of that tool; csv, jsonl, parquet: the answers of a run."""
    out: Annotated[Path, Option(kind="path")]
    """New folder for an exported benchmark, or new file for an exported run."""
    parser: Mode = "strict"
    """Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations."""
    protocol: Annotated[str | None, Option(kind="protocol")] = None
    """Protocol of the exported task. Required for a benchmark."""
    prompt: str | None = None
    """Prompt variant of the exported task; paper is the published prompt.  [default: paper]"""
    sampling: Annotated[str | None, Option(metavar="PLAN")] = None
    """Sampling plan of the exported task, as listed by `unreel frames --help`; whole: the complete video files.  [default: fps-2 for the protocol trace, otherwise uniform-8]"""
    marks: Marks | None = None
    """Timestamp before each frame in the exported prompt. on: included; off: omitted; default: on for the protocol trace only."""
    max_pixels: Annotated[int | None, Option(metavar="N")] = None
    """Maximum number of pixels per frame; larger frames are scaled down."""
    name: str | None = None
    """Name of the exported task.  [default: SOURCE-PROTOCOL]"""
    split: str | None = None
    """Name of the benchmark split to use, for example test.  [default: all splits]"""
    seed: int | None = None
    """Random seed for the order of the clips in a pair and for the confidence intervals."""

    def list_task_settings(self) -> dict[str, Any]:
        """Return the given settings that only an exported task has."""
        names = ("protocol", "prompt", "box_space", "sampling", "marks", "max_pixels", "name")
        values = {name: getattr(self, name) for name in (*names, "layout", "split", "seed")}
        return {name: value for name, value in values.items() if value is not None}


def export_run(settings: ExportSettings, on_note: Callable[[str], None]) -> int:
    """Write the questions of a run as rows; return their number.

    Raises:
        InvalidSettingError: A setting of a task is given.
    """
    unused = [*settings.list_task_settings(), *(["map"] if settings.mapping else [])]
    if unused:
        raise InvalidSettingError(
            f"--{unused[0].replace('_', '-')}",
            f"cannot be used with --to {settings.to}",
            "A run has its own protocol: omit the option, or export a benchmark with --to KIT",
        )
    with needs_extra("eval"):
        from unreel.evaluation.export import export_run

    run = open_noted_run(settings.source, settings, on_note)
    match settings.to:
        case "csv" | "jsonl" | "parquet" as row_format:
            return export_run(run, settings.out, form=row_format, mode=settings.parser)
        case _:
            raise UnknownNameError("format of a run", settings.to, ROW_FORMATS)


def export_benchmark(settings: ExportSettings) -> "BenchmarkExportResult":
    """Write a benchmark as a task of another evaluation kit.

    Raises:
        InvalidSettingError: A setting is missing, or only fits a run.
        UnreadableSourceError: The output folder is not empty, or the source is not a local folder.
    """
    from unreel.benchmarks.export.exported_question import BenchmarkExportRecipe
    from unreel.benchmarks.loader import open_benchmark
    from unreel.media.access import open_media_reader

    if settings.moved_to is not None or settings.accept_changed:
        raise InvalidSettingError(
            "--accept-changed" if settings.moved_to is None else "--benchmark",
            f"cannot be used with --to {settings.to}",
            "It applies to the benchmark of a run: leave it out",
        )
    if settings.protocol is None:
        raise InvalidSettingError(
            "--protocol",
            f"--to {settings.to} needs it",
            "Name the protocol: trace, realism, reality or preference",
        )
    source, out = settings.source, settings.out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UnreadableSourceError(str(out), "not an empty folder", "Name a new one")
    if "://" in source:
        raise UnreadableSourceError(
            source,
            "not a folder of this machine",
            "Copy the benchmark to a folder first: the kits open clips by path",
        )
    values = settings.list_task_settings()
    plan = values.get("sampling", get_protocol(settings.protocol).sampling)
    values["sampling"] = None if plan == WHOLE else plan
    path = Path(source).resolve()
    stem = f"{path.name if path.is_dir() else path.stem}-{settings.protocol}"
    task = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-_") or settings.protocol
    values["name"] = values.get("name") or task
    layout = values.pop("layout", None)
    recipe = BenchmarkExportRecipe(**values, mode=settings.parser)
    benchmark = open_benchmark(
        Path(source),
        layout,
        mapping=parse_column_mapping(settings.mapping) or None,
        outside=settings.allow_outside,
    )
    with open_media_reader(read_environment_settings(), trusted=settings.trusted) as reader:
        exported: BenchmarkExportResult = KITS.load(settings.to)(
            benchmark, recipe, folder=out, reader=reader
        )
    return exported
