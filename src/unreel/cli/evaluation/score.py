"""`unreel score`: score stored answers against the ground truth, without a new query."""

import sys
from pathlib import Path

import click

from unreel.cli.options import (
    ProtocolParamType,
    accept_changed_option,
    allow_outside_option,
    box_space_option,
    column_map_option,
    layout_option,
    list_run_completions,
    parse_column_mapping,
)
from unreel.cli.output import Form, json_option, table_format_option
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.registry import LazyImport
from unreel.core.settings import read_environment_settings
from unreel.protocols.protocol import Mode


@click.command()
@click.argument("answers", shell_complete=list_run_completions)
@click.option(
    "--benchmark",
    type=click.Path(exists=True, path_type=Path),
    metavar="B",
    help="Benchmark with the ground truth: a folder or a table of clips. A run needs it only if its benchmark has been moved.",
)
@layout_option
@column_map_option
@allow_outside_option
@accept_changed_option
@click.option(
    "--protocol",
    "instrument",
    type=ProtocolParamType(),
    help="Protocol of the answered questions. Required for a file of answers.",
)
@click.option(
    "--prompt",
    default="paper",
    show_default=True,
    help="Prompt variant of the answered questions; paper is the published prompt.",
)
@click.option(
    "--parser",
    type=click.Choice(["strict", "lenient"]),
    show_default="that of the run's recipe, else strict",
    help="Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations.",
)
@box_space_option
@click.option(
    "--split", help="Name of the benchmark split to use, for example test.  [default: all splits]"
)
@click.option(
    "--seed", default=0, show_default=True, help="Random seed for the confidence intervals."
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL",
    help="Model that scores the explanations in the answers. Repeatable: with two models, their agreement is printed.",
)
@click.option(
    "--sts",
    is_flag=True,
    help="Also measure the similarity of explanations to the ground truth, by sentence embeddings.",
)
@click.option(
    "--out",
    metavar="PLACE",
    help="Folder or s3:// prefix for the scores of --judge, if ANSWERS is a file.  [default: ANSWERS.rulings]",
)
@table_format_option
@json_option
def score(  # noqa: PLR0913  one parameter for each option
    *,
    answers: str,
    benchmark: Path | None,
    layout: str | None,
    mapping: tuple[str, ...],
    outside: bool,
    accept_changed: bool,
    instrument: str | None,
    prompt: str,
    parser: Mode | None,
    box_space: str | None,
    split: str | None,
    seed: int,
    judges: tuple[str, ...],
    sts: bool,
    form: Form,
    out: str | None,
    as_json: bool,
) -> None:
    """Score ANSWERS: a run of `unreel eval`, or a file of answers for a benchmark.

    A run is a folder or s3://bucket/prefix. Its recipe contains the benchmark and the protocol, and the
    options --parser, --judge, --sts, --benchmark, --allow-outside and --accept-changed apply.

    A file needs --benchmark and --protocol. It is a JSONL, CSV, TSV or Parquet table with the columns `name`
    and `text` or `failure`, or for human votes `name`, `voter` and `label`; or a JSON or text file of
    predicted segments.

    Sends no question to a reviewer. Exits with status 1 if answers are missing, failed or could not be
    matched.
    """
    if "://" in answers or Path(answers).is_dir():
        score_kept = LazyImport(
            "unreel.cli.evaluation.score_job:score_stored_run", extra="eval"
        ).load()
        open_told = LazyImport(
            "unreel.cli.evaluation.runs_job:open_run_with_identity_warning", extra="eval"
        ).load()
        options = {"moved_to": benchmark, "outside": outside, "accept_changed": accept_changed}
        run = open_told(answers, read_environment_settings(), **options)
        sys.exit(score_kept(run, parser, judges=judges, sts=sts, form=form, as_json=as_json))
    if not Path(answers).exists():
        raise UnreadableSourceError(answers, "no such file or folder", "Check the path")
    if benchmark is None or instrument is None:
        raise InvalidSettingError(
            "--benchmark" if benchmark is None else "--protocol",
            "missing",
            "A file of answers needs it; a folder of `unreel eval` does not",
        )
    score_file = LazyImport("unreel.cli.evaluation.score_file_job:score_answer_file").load()
    status = score_file(
        Path(answers),
        benchmark,
        layout=layout,
        mapping=parse_column_mapping(mapping),
        outside=outside,
        instrument=instrument,
        prompt=prompt,
        mode=parser or "strict",
        box_space=box_space,
        split=split,
        seed=seed,
        judges=judges,
        sts=sts,
        out=out,
        form=form,
        as_json=as_json,
    )
    sys.exit(status)
