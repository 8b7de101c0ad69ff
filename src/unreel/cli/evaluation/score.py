"""`unreel score`: score stored answers against the ground truth, without a new query."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.imported_answers import VOTER, join_answers_with_entries
from unreel.benchmarks.loader import open_benchmark
from unreel.benchmarks.localisation.predictions import (
    find_prediction_box_space,
    is_segment_prediction_file,
)
from unreel.benchmarks.scorable_rows import build_scorable_rows, require_scorable_rows
from unreel.benchmarks.tables import read_table_column_names
from unreel.cli.completion import list_run_completions
from unreel.cli.evaluation.scorecard_output import (
    explain_empty_scorecards,
    print_answer_counts,
    print_scorecard_metrics,
    print_unmatched_items,
)
from unreel.cli.options import (
    ProtocolParamType,
    accept_changed_option,
    allow_outside_option,
    box_space_option,
    column_map_option,
    layout_option,
    parse_column_mapping,
)
from unreel.cli.output import Form, json_option, print_json, print_message, table_format_option
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.estimate import Scorecard
from unreel.core.registry import LazyImport
from unreel.core.settings import read_environment_settings
from unreel.protocols.protocol import VOTED, Mode, Subject, get_protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScoreDocument:
    """JSON document that `unreel score` prints: the scorecard, and unmatched clips and answers."""

    scorecard: Scorecard
    prompt: str
    """The variant that was asked."""
    not_asked: tuple[str, ...]
    unknown: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    without_truth: tuple[Rejected, ...]
    texts: Mapping[str, Any]
    """Messages of judges, or of the comparison of reasons."""

    @property
    def is_complete(self) -> bool:
        """Return whether every clip has an answer and every row is usable."""
        left_over = self.not_asked or self.unknown or self.rejected or self.without_truth
        return not (left_over or self.scorecard.failures)


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
        option = "--benchmark" if benchmark is None else "--protocol"
        remedy = "A file of answers needs it; a folder of `unreel eval` does not"
        raise InvalidSettingError(option, "missing", remedy)
    chosen = get_protocol(instrument)
    box_space = box_space or find_prediction_box_space(Path(answers))
    if chosen.needs_box_space and box_space is None:
        option, remedy = "--box-space", "Name the unit of the boxes, for example --box-space pixel"
        raise InvalidSettingError(option, "missing", remedy)
    chosen.prompt(prompt)
    opened = open_benchmark(
        benchmark, layout, mapping=parse_column_mapping(mapping), outside=outside
    )
    if not is_segment_prediction_file(Path(answers)) and VOTER in read_table_column_names(
        Path(answers)
    ):
        if instrument != VOTED:
            option, problem = "--protocol", "votes say real or generated"
            raise InvalidSettingError(option, problem, f"Use --protocol {VOTED}")
        score_voters = LazyImport("unreel.cli.evaluation.score_votes:score_vote_file").load()
        ways = {"split": split, "seed": seed, "form": form, "as_json": as_json}
        sys.exit(score_voters(Path(answers), opened, **ways))
    joined = join_answers_with_entries(
        opened, Path(answers), chosen.subject, protocol=instrument
    ).in_split(split)
    scorable = build_scorable_rows(
        joined, chosen, mode=parser or "strict", prompt=prompt, space=box_space
    )
    require_scorable_rows(scorable, joined, chosen, answers=answers, benchmark=str(benchmark))
    rows, texts = scorable.rows, {}
    if judges or sts:
        score_words = LazyImport(
            "unreel.cli.evaluation.score_job:score_answer_file_explanations", extra="eval"
        ).load()
        where = {"sts": sts, "seed": seed, "file": Path(answers), "out": out}
        rows, texts = score_words(rows, chosen, judges, **where)
    scored = AnswerScoreDocument(
        scorecard=chosen.score(rows, seed=seed),
        prompt=prompt,
        not_asked=scorable.not_asked,
        unknown=joined.unknown,
        rejected=joined.rejected,
        without_truth=scorable.without_truth,
        texts=texts,
    )
    sys.exit(_print_scored_answers(scored, chosen.subject, form, as_json=as_json))


def _print_scored_answers(
    scored: AnswerScoreDocument, subject: Subject, form: Form, *, as_json: bool
) -> int:
    """Print the scorecard; return the exit status."""
    if as_json:
        print_json(scored)
    else:
        _print_score_report(scored, subject, form)
    if reason := explain_empty_scorecards([scored.scorecard]):
        print_message(reason)
    return 0 if scored.is_complete and not reason else 1


def _print_score_report(scored: AnswerScoreDocument, subject: Subject, form: Form) -> None:
    print_answer_counts(scored.scorecard)
    print_unmatched_items(
        {
            f"{subject}s without an answer": scored.not_asked,
            f"answers about {subject}s that the benchmark does not have": scored.unknown,
            "rows that cannot be used": scored.rejected,
            "clips that lack the truth to compare with": scored.without_truth,
        }
    )
    print_scorecard_metrics(scored.scorecard, form)
    for what, value in scored.texts.items():
        print_message(f"{what}: {value}")
