"""How well the words of answers match those of people: judged in `trace`, compared in `realism`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from unreel.core.verdict import RealismVerdict, TraceVerdict
from unreel.evaluate.judge import Agreement, Explained, Judge, Judging, agreement, judge_all
from unreel.evaluate.scoring import Rows
from unreel.evaluate.similarity import (
    Encoder,
    Reasoned,
    compare_reasons,
    join_reasons,
)
from unreel.protocols.protocol import Row
from unreel.reviewers.endpoint.keys import Contact, contact
from unreel.reviewers.endpoint.reviewer import EndpointReviewer


def build_judge(model: str, *, key_hosts: str) -> Callable[[], Judge]:
    """A maker of the judge `provider/name`, with the key that may go to its server."""
    return partial(_open_judge, model, contact(model, key_hosts=key_hosts))


def _open_judge(model: str, asked: Contact) -> Judge:
    return EndpointReviewer(model, api_key=asked.read_key())


@dataclass(slots=True)
class ExplanationJudges:
    """Fills in the explanation scores of `trace`; keeps what the judges said of each condition.

    The first judge scores. A second one is asked the same, only to tell how far they agree.
    """

    judges: Sequence[Callable[[], Judge]]
    cache: Path
    seed: int
    judgings: list[Judging] = field(default_factory=list)
    agreements: list[Agreement] = field(default_factory=list)

    def __call__(self, rows: Rows) -> Rows:
        """The rows with a score for each explanation that the judge could score."""
        asked = [index for index, row in enumerate(rows) if _explained(row)]
        pairs = [_pair(rows[index]) for index in asked]
        first, *others = (judge_all(pairs, judge, cache=self.cache) for judge in self.judges)
        self.judgings.append(first)
        self.agreements.extend(agreement(first, other, seed=self.seed) for other in others)
        scores = dict(zip(asked, (one.score for one in first.judged), strict=True))
        return [replace(row, text_score=scores.get(i)) for i, row in enumerate(rows)]


@dataclass(slots=True)
class ReasonSimilarity:
    """Fills in the sentence similarity of `realism`; the encoder's name is the checkpoint."""

    encoder: Encoder

    def __call__(self, rows: Rows) -> Rows:
        """The rows with the similarity of their reasons to a person's."""
        asked = [i for i, row in enumerate(rows) if isinstance(row.outcome, RealismVerdict)]
        found = compare_reasons([_reasoned(rows[i]) for i in asked], self.encoder)
        scores = dict(zip(asked, (one.score for one in found.similarities), strict=True))
        return [replace(row, text_score=scores.get(i)) for i, row in enumerate(rows)]


def _explained(row: Row[Any, Any]) -> bool:
    said = row.outcome
    return (
        isinstance(said, TraceVerdict)
        and isinstance(said.explanation, str)
        and bool(row.truth.explanation)
    )


def _pair(row: Row[Any, Any]) -> Explained:
    said: Any = row.outcome
    return Explained(clip=str(row.subject), truth=row.truth.explanation, predicted=said.explanation)


def _reasoned(row: Row[Any, Any]) -> Reasoned:
    said: Any = row.outcome
    return Reasoned(
        clip=str(row.subject),
        truth=join_reasons(row.truth.problem, row.truth.adherence),
        predicted=join_reasons(said.problem, said.adherence),
    )
