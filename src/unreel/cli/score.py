"""`unreel score`: score stored answers against the ground truth, without a new query."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unreel.api import score as api
from unreel.cli.options import settings_options
from unreel.cli.output import (
    Form,
    echo,
    format_retry_command,
    json_option,
    print_json,
    print_message,
    print_table,
    table_format_option,
)
from unreel.cli.process_signals import limit_malloc_arenas
from unreel.cli.scorecards import (
    build_condition_scorecard_rows,
    build_published_document,
    explain_empty_scorecards,
    format_metric_cell,
    print_answer_counts,
    print_condition_scorecards,
    print_published_results,
    print_scorecard_metrics,
    print_scorecard_table,
    print_unmatched_items,
)

if TYPE_CHECKING:
    from unreel.benchmarks.votes import JoinedVotes, VoteScores

_VOTER_METRICS = ("balanced", "real-accuracy", "fake-accuracy")


@click.command()
@settings_options(api.ScoreSettings)
@table_format_option
@json_option
def score(settings: api.ScoreSettings, *, form: Form, as_json: bool) -> None:
    """Score ANSWERS: a run of `unreel eval`, or a file of answers for a benchmark.

    A run is a folder or s3://bucket/prefix. Its recipe contains the benchmark and the protocol, and the
    options --parser, --judge, --sts, --benchmark, --allow-outside and --accept-changed apply.

    A file needs --benchmark and --protocol. It is a JSONL, CSV, TSV or Parquet table with the columns `name`
    and `text` or `failure`, or for human votes `name`, `voter` and `label`; or a JSON or text file of
    predicted segments.

    Sends no question to a reviewer. Exits with status 1 if answers are missing, failed or could not be
    matched.
    """
    if "://" in settings.answers or Path(settings.answers).is_dir():
        sys.exit(_score_run(settings, form, as_json=as_json))
    scored = api.score_answer_file(settings, print_message)
    if isinstance(scored, api.ScoredAnswers):
        sys.exit(_print_answers(scored, settings, form, as_json=as_json))
    sys.exit(_print_votes(*scored, form=form, as_json=as_json))


def _score_run(settings: api.ScoreSettings, form: Form, *, as_json: bool) -> int:
    limit_malloc_arenas()
    run, scores, summary = api.score_stored_run(settings, print_message)
    if as_json:
        rows = build_condition_scorecard_rows(scores)
        published = build_published_document(run, scores)
        print_json({"run": run.place.uri, "scores": rows, **summary, **published})
    else:
        print_condition_scorecards(scores, form)
        print_published_results(run, scores, form)
        for name, value in summary.items():
            print_message(f"{name}: {value}")
        if any(score.scorecard.failures for score in scores):
            print_message(f"Retry the failures: {format_retry_command(run.place.uri)}")
    if reason := explain_empty_scorecards([score.scorecard for score in scores]):
        print_message(reason)
    is_complete = all(s.n_not_asked == 0 and not s.scorecard.failures for s in scores)
    return 0 if is_complete and not reason else 1


def _print_answers(
    scored: api.ScoredAnswers, settings: api.ScoreSettings, form: Form, *, as_json: bool
) -> int:
    if as_json:
        print_json(scored)
    else:
        subject = api.get_subject(settings)
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
        for name, value in scored.texts.items():
            print_message(f"{name}: {value}")
    if reason := explain_empty_scorecards([scored.scorecard]):
        print_message(reason)
    return 0 if scored.is_complete and not reason else 1


def _print_votes(scores: "VoteScores", joined: "JoinedVotes", *, form: Form, as_json: bool) -> int:
    unmatched = {
        "clips without a vote": joined.not_asked,
        "votes about clips that the benchmark does not have": joined.unknown,
        "rows that cannot be used": joined.rejected,
    }
    status = int(any(unmatched.values()))
    if as_json:
        document = {"not_asked": joined.not_asked, "unknown": joined.unknown}
        print_json({"scores": scores, **document, "rejected": joined.rejected})
        return status
    n_clips = len(joined.ballots) - len(joined.not_asked)
    print_message(
        f"{scores.votes.n_questions} votes of {len(scores.voters)} people on {n_clips} clips"
    )
    print_unmatched_items(unmatched)
    if form != "text":
        people = {f"voter {name}": card for name, card in scores.voters.items()}
        everybody = {"all votes": scores.votes, "majority": scores.majority}
        print_scorecard_table("who", everybody | people, form)
        return status
    echo("all votes")
    print_scorecard_metrics(scores.votes)
    echo("majority of each clip")
    print_scorecard_metrics(scores.majority)
    rows = [
        {"voter": name, **{m: format_metric_cell(card[m]) for m in _VOTER_METRICS}}
        for name, card in scores.voters.items()
    ]
    print_table(("voter", *_VOTER_METRICS), rows)
    echo(f"agreement between voters (Krippendorff's alpha): {scores.agreement}")
    return status
