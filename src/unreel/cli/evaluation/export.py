"""`unreel export`: export a benchmark to another evaluation kit, or a run as rows."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from unreel.cli.options import (
    ProtocolParamType,
    box_space_option,
    column_map_option,
    layout_option,
    list_run_completions,
    parse_column_mapping,
    run_benchmark_options,
)
from unreel.cli.output import json_option, print_json, print_message, trusted_option
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.question import Marks
from unreel.core.registry import LazyImport, NamedObjectRegistry
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
ROWS = ("csv", "jsonl", "parquet")
_WHOLE = "whole"


@click.command()
@click.argument("source", shell_complete=list_run_completions)
@click.option(
    "--to",
    "form",
    required=True,
    type=click.Choice([*KITS.names(), *ROWS]),
    help="Output format. lmms-eval, vlmevalkit: a benchmark as a task of that tool; csv, jsonl, parquet: the answers of a run.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="New folder for an exported benchmark, or new file for an exported run.",
)
@click.option(
    "--parser",
    type=click.Choice(get_args(Mode)),
    default="strict",
    show_default=True,
    help="Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations.",
)
@click.option(
    "--protocol",
    type=ProtocolParamType(),
    help="Protocol of the exported task. Required for a benchmark.",
)
@click.option(
    "--prompt",
    help="Prompt variant of the exported task; paper is the published prompt.  [default: paper]",
)
@box_space_option
@click.option(
    "--sampling",
    metavar="PLAN",
    help=f"Sampling plan of the exported task, as listed by `unreel frames --help`; {_WHOLE}: the complete video files.  "
    "[default: fps-2 for the protocol trace, otherwise uniform-8]",
)
@click.option(
    "--marks",
    type=click.Choice(get_args(Marks)),
    help="Timestamp before each frame in the exported prompt. on: included; off: omitted; default: on for the protocol trace only.",
)
@click.option(
    "--max-pixels",
    type=int,
    metavar="N",
    help="Maximum number of pixels per frame; larger frames are scaled down.",
)
@click.option("--name", help="Name of the exported task.  [default: SOURCE-PROTOCOL]")
@layout_option
@column_map_option
@click.option(
    "--split", help="Name of the benchmark split to use, for example test.  [default: all splits]"
)
@click.option(
    "--seed",
    type=int,
    help="Random seed for the order of the clips in a pair and for the confidence intervals.",
)
@run_benchmark_options
@trusted_option
@json_option
def export(
    *,
    source: str,
    form: str,
    out: Path,
    parser: Mode,
    mapping: tuple[str, ...],
    trusted: bool,
    moved_to: Path | None,
    outside: bool,
    accept_changed: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Export SOURCE, a benchmark or a run, for another tool.

    A benchmark becomes a task of lmms-eval or VLMEvalKit with unreel's prompts and scorers; it
    needs --protocol. A run of `unreel eval`, a folder or s3://bucket/prefix, becomes one row per
    question.

    Exits with status 1 if rows of the benchmark could not be exported.
    """
    typed = {name: value for name, value in asked.items() if value is not None}
    if form in ROWS:
        if typed or mapping:
            raise InvalidSettingError(
                f"--{next(iter(typed), 'map').replace('_', '-')}",
                f"cannot be used with --to {form}",
                "A run has its own protocol: omit the option, or export a benchmark with --to KIT",
            )
        write_rows = LazyImport(
            "unreel.cli.evaluation.runs_job:export_run_rows", extra="eval"
        ).load()
        options = {"moved_to": moved_to, "outside": outside, "accept_changed": accept_changed}
        write_rows(source, out, options, form=form, mode=parser, as_json=as_json)
        return
    if moved_to is not None or accept_changed:
        raise InvalidSettingError(
            "--accept-changed" if moved_to is None else "--benchmark",
            f"cannot be used with --to {form}",
            "It applies to the benchmark of a run: leave it out",
        )
    if "protocol" not in typed:
        raise InvalidSettingError(
            "--protocol",
            f"--to {form} needs it",
            "Name the protocol: trace, realism, reality or preference",
        )
    reading = {"mapping": parse_column_mapping(mapping) or None, "outside": outside}
    exported = _export_benchmark_to_kit(
        source, out, form=form, settings=typed | {"mode": parser}, reading=reading, trusted=trusted
    )
    _print_export_result(exported, form, as_json=as_json)
    sys.exit(1 if exported.n_rejected else 0)


def _export_benchmark_to_kit(
    source: str,
    out: Path,
    *,
    form: str,
    settings: dict[str, Any],
    reading: dict[str, Any],
    trusted: bool,
) -> "BenchmarkExportResult":
    from unreel.benchmarks.export.exported_question import BenchmarkExportRecipe
    from unreel.benchmarks.loader import open_benchmark
    from unreel.media.access import open_media_reader

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UnreadableSourceError(str(out), "not an empty folder", "Name a new one")
    if "://" in source:
        raise UnreadableSourceError(
            source,
            "not a folder of this machine",
            "Copy the benchmark to a folder first: the kits open clips by path",
        )
    layout = settings.pop("layout", None)
    plan = settings.get("sampling", get_protocol(settings["protocol"]).sampling)
    settings["sampling"] = None if plan == _WHOLE else plan
    name = settings.pop("name", None) or _format_task_name(source, settings["protocol"])
    recipe = BenchmarkExportRecipe(name=name, **settings)
    benchmark = open_benchmark(Path(source), layout, **reading)
    with open_media_reader(read_environment_settings(), trusted=trusted) as reader:
        exported: BenchmarkExportResult = KITS.load(form)(
            benchmark, recipe, folder=out, reader=reader
        )
    return exported


def _format_task_name(source: str, protocol: str) -> str:
    path = Path(source).resolve()
    stem = path.name if path.is_dir() else path.stem
    return re.sub(r"[^A-Za-z0-9_-]+", "-", f"{stem}-{protocol}").strip("-_") or protocol


def _print_export_result(exported: "BenchmarkExportResult", form: str, *, as_json: bool) -> None:
    if as_json:
        print_json(exported)
        return
    print_message(f"{exported.n_questions} questions for {form} in {exported.folder}")
    if exported.n_rejected:
        first = exported.rejected[0]
        print_message(f"  {exported.n_rejected} rows cannot be exported, the first is {first}")
    print_message("docs/ecosystem.md explains how to run it")
