"""`unreel score VOTES`: score human votes on the clips of a benchmark with protocol `reality`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from unreel.benchmarks.entry import Rejected
from unreel.benchmarks.loader import Benchmark
from unreel.benchmarks.votes import JoinedVotes, VoteScores, join_votes_with_entries, score_votes
from unreel.cli.evaluation.scorecard_output import (
    format_metric_cell,
    print_scorecard_metrics,
    print_scorecard_table,
    print_unmatched_items,
)
from unreel.cli.output import Form, echo, print_json, print_message, print_table
from unreel.core.estimate import Scorecard

_LEADING: Final = ("balanced", "real-accuracy", "fake-accuracy")


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteScoreDocument:
    """JSON document that `unreel score VOTES` prints: the scores, and unmatched clips and votes."""

    scores: VoteScores
    not_asked: tuple[str, ...]
    unknown: tuple[str, ...]
    rejected: tuple[Rejected, ...]


def score_vote_file(
    path: Path,
    benchmark: Benchmark,
    *,
    split: str | None,
    seed: int,
    form: Form,
    as_json: bool,
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


def _build_voter_row(name: str, card: Scorecard) -> Mapping[str, object]:
    return {"voter": name, **{metric: format_metric_cell(card[metric]) for metric in _LEADING}}
