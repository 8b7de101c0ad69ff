"""Implementation of `unreel score ANSWERS`: score a file of answers, segments or human votes against a benchmark."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.imported_answers import (
    VOTER,
    build_scorable_rows,
    join_answers_with_entries,
    require_scorable_rows,
)
from unreel.benchmarks.loader import Benchmark, open_benchmark
from unreel.benchmarks.localisation.predictions import (
    find_prediction_box_space,
    is_segment_prediction_file,
)
from unreel.benchmarks.tables import read_table_column_names
from unreel.benchmarks.votes import JoinedVotes, VoteScores, join_votes_with_entries, score_votes
from unreel.cli.evaluation.scorecard_output import (
    explain_empty_scorecards,
    format_metric_cell,
    print_answer_counts,
    print_scorecard_metrics,
    print_scorecard_table,
    print_unmatched_items,
)
from unreel.cli.output import Form, echo, print_json, print_message, print_table
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Scorecard
from unreel.core.registry import LazyImport
from unreel.protocols.protocol import VOTED, Mode, Subject, get_protocol

_LEADING = ("balanced", "real-accuracy", "fake-accuracy")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScoreDocument:
    """JSON document that `unreel score` prints: the scorecard, and unmatched clips and answers."""

    scorecard: Scorecard
    prompt: str
    """Prompt variant of the questions."""
    not_asked: tuple[str, ...]
    unknown: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    without_truth: tuple[Rejected, ...]
    texts: Mapping[str, Any]
    """Summary of how explanations were scored; empty if they were not scored."""

    @property
    def is_complete(self) -> bool:
        """Return whether every clip has an answer and every row is usable."""
        left_over = self.not_asked or self.unknown or self.rejected or self.without_truth
        return not (left_over or self.scorecard.failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteScoreDocument:
    """JSON document that `unreel score VOTES` prints: the scores, and unmatched clips and votes."""

    scores: VoteScores
    not_asked: tuple[str, ...]
    unknown: tuple[str, ...]
    rejected: tuple[Rejected, ...]


def score_answer_file(  # noqa: PLR0913  one parameter for each option
    path: Path,
    benchmark: Path,
    *,
    layout: str | None,
    mapping: Mapping[str, str],
    outside: bool,
    instrument: str,
    prompt: str,
    mode: Mode,
    box_space: str | None,
    split: str | None,
    seed: int,
    judges: tuple[str, ...],
    sts: bool,
    out: str | None,
    form: Form,
    as_json: bool,
) -> int:
    """Score the answers, segments or votes in the file `path` and print the metrics; return the exit status."""
    chosen = get_protocol(instrument)
    box_space = box_space or find_prediction_box_space(path)
    if chosen.needs_box_space and box_space is None:
        raise InvalidSettingError(
            "--box-space", "missing", "Name the unit of the boxes, for example --box-space pixel"
        )
    chosen.prompt(prompt)
    opened = open_benchmark(benchmark, layout, mapping=mapping, outside=outside)
    if not is_segment_prediction_file(path) and VOTER in read_table_column_names(path):
        if instrument != VOTED:
            raise InvalidSettingError(
                "--protocol", "votes say real or generated", f"Use --protocol {VOTED}"
            )
        return _score_vote_file(path, opened, split=split, seed=seed, form=form, as_json=as_json)
    joined = join_answers_with_entries(opened, path, chosen.subject, protocol=instrument).in_split(
        split
    )
    scorable = build_scorable_rows(joined, chosen, mode=mode, prompt=prompt, space=box_space)
    require_scorable_rows(scorable, joined, chosen, answers=str(path), benchmark=str(benchmark))
    rows: Any = scorable.rows
    texts: Mapping[str, Any] = {}
    if judges or sts:
        score_words = LazyImport(
            "unreel.cli.evaluation.score_job:score_answer_file_explanations", extra="eval"
        ).load()
        where = {"sts": sts, "seed": seed, "file": path, "out": out}
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
    return _print_scored_answers(scored, chosen.subject, form, as_json=as_json)


def _print_scored_answers(
    scored: AnswerScoreDocument, subject: Subject, form: Form, *, as_json: bool
) -> int:
    """Print the scorecard; return the exit status."""
    if as_json:
        print_json(scored)
    else:
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
    if why := explain_empty_scorecards([scored.scorecard]):
        print_message(why)
    return 0 if scored.is_complete and not why else 1


def _score_vote_file(
    path: Path, benchmark: Benchmark, *, split: str | None, seed: int, form: Form, as_json: bool
) -> int:
    """Score the votes in the file `path` and print the metrics; return the exit status."""
    joined = join_votes_with_entries(benchmark, path, split=split)
    scores = score_votes(joined.ballots, seed=seed)
    if as_json:
        print_json(
            VoteScoreDocument(
                scores=scores,
                not_asked=joined.not_asked,
                unknown=joined.unknown,
                rejected=joined.rejected,
            )
        )
    else:
        _print_vote_scores(scores, joined, form)
    return 1 if joined.not_asked or joined.unknown or joined.rejected else 0


def _print_vote_scores(scores: VoteScores, joined: JoinedVotes, form: Form) -> None:
    n_clips = len(joined.ballots) - len(joined.not_asked)
    print_message(
        f"{scores.votes.n_questions} votes of {len(scores.voters)} people on {n_clips} clips"
    )
    print_unmatched_items(
        {
            "clips without a vote": joined.not_asked,
            "votes about clips that the benchmark does not have": joined.unknown,
            "rows that cannot be used": joined.rejected,
        }
    )
    if form != "text":
        people = {f"voter {name}": card for name, card in scores.voters.items()}
        everybody = {"all votes": scores.votes, "majority": scores.majority}
        print_scorecard_table("who", everybody | people, form)
        return
    echo("all votes")
    print_scorecard_metrics(scores.votes)
    echo("majority of each clip")
    print_scorecard_metrics(scores.majority)
    print_table(("voter", *_LEADING), [_build_voter_row(*item) for item in scores.voters.items()])
    echo(f"agreement between voters (Krippendorff's alpha): {scores.agreement}")


def _build_voter_row(name: str, scorecard: Scorecard) -> Mapping[str, object]:
    return {"voter": name, **{metric: format_metric_cell(scorecard[metric]) for metric in _LEADING}}
