"""Scores of explanations against people's: by a judge in `trace`, by similarity in `realism`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from unreel.core.settings import EnvironmentSettings, read_storage_options
from unreel.core.verdict import RealismVerdict, TraceVerdict, Unparsed
from unreel.engine.location import get_local_state_folder, resolve_location
from unreel.engine.table import LanceTable
from unreel.evaluation.judge import (
    NO_PREDICTION,
    NO_TRUTH,
    RULINGS,
    ExplanationPair,
    JudgeAgreement,
    JudgeRulings,
    JudgeRulingStore,
    compute_judge_agreement,
    judge_explanations,
    read_stored_rulings,
)
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scoring import Rows
from unreel.recipes.validation import validate_recipe_sections
from unreel.reviewers.config import ReviewerSection
from unreel.reviewers.endpoint.model_address import parse_model_address
from unreel.reviewers.endpoint.reviewer import ModelIOFormat, format_endpoint_model_name
from unreel.reviewers.sentence_embeddings import SentenceEncoder, embed_sentences

NO_DIRECTION = "no-direction"


def join_reasons(problem: str | Unparsed, adherence: str | Unparsed) -> str:
    """Join problem description and standard adherence to one text; empty if both are missing."""
    parts = (part.strip() for part in (problem, adherence) if isinstance(part, str))
    return " ".join(part for part in parts if part)


def compare_reasons(
    pairs: Sequence[ExplanationPair], encoder: SentenceEncoder
) -> list[tuple[float | None, str]]:
    """Compute the cosine similarity of each pair of reasons, in order; each text is encoded once.

    The similarity is `None`, never 0, with a reason that can be counted, if a text is missing or
    its vector has no direction.
    """
    complete = [pair for pair in pairs if pair.truth.strip() and pair.predicted.strip()]
    texts = list(dict.fromkeys(text for pair in complete for text in (pair.truth, pair.predicted)))
    vectors = dict(zip(texts, embed_sentences(texts, encoder), strict=True))
    similarities: list[tuple[float | None, str]] = []
    for pair in pairs:
        truth, predicted = vectors.get(pair.truth), vectors.get(pair.predicted)
        if not pair.truth.strip():
            similarities.append((None, NO_TRUTH))
        elif not pair.predicted.strip():
            similarities.append((None, NO_PREDICTION))
        elif truth is None or predicted is None:
            similarities.append((None, NO_DIRECTION))
        else:  # rounding can give a cosine slightly above 1
            similarities.append((float(np.clip(truth @ predicted, -1.0, 1.0)), ""))
    return similarities


RULINGS_SUFFIX = ".rulings"
Judge = Callable[[Sequence[ExplanationPair]], JudgeRulings]
"""Function that returns rulings on explanations, in order."""


def build_explanation_judge(model: str, store: JudgeRulingStore, *, key_hosts: str) -> Judge:
    """Return a function that gets the rulings of a judge model on explanations.

    Only explanations without a stored ruling in `store` are sent. `model` is `provider/name`.
    `key_hosts` is the setting with the hosts that may receive your own key.
    """
    parse_model_address(model)
    section = validate_recipe_sections(ReviewerSection, {"model": model})
    factory = section.opener(key_hosts=key_hosts)
    return partial(
        judge_explanations, factory=factory, store=store, in_flight=section.max_connections
    )


def build_stored_rulings_judge(model: str, run: EvalRun) -> Judge:
    """Return a function that reads the stored rulings of judge `model` in `run`; it sends nothing."""
    return partial(
        read_stored_rulings,
        judge=format_endpoint_model_name(model, ModelIOFormat()),
        store=open_run_rulings(run),
    )


def open_run_rulings(run: EvalRun) -> JudgeRulingStore:
    """Return the store of the judges' rulings on the explanations in `run`."""
    return JudgeRulingStore(table=run.rulings, ledgers=run.ledgers)


def open_answer_file_rulings(
    answers: Path, out: str | None, settings: EnvironmentSettings
) -> JudgeRulingStore:
    """Return the rulings' store at `out`, by default `ANSWERS.rulings` next to the answers file."""
    location = resolve_location(out or f"{answers}{RULINGS_SUFFIX}", read_storage_options(settings))
    table = LanceTable(location / "rulings.lance", RULINGS)
    return JudgeRulingStore(table=table, ledgers=get_local_state_folder(location, settings))


@dataclass(slots=True)
class ExplanationJudges:
    """Judges of explanations with rulings by condition; the first scores, a second measures agreement."""

    judges: Sequence[Judge]
    seed: int
    judgings: list[JudgeRulings] = field(default_factory=list)
    agreements: list[JudgeAgreement] = field(default_factory=list)

    def __call__(self, rows: Rows) -> Rows:
        """Return the rows with a score for each explanation that the first judge could score."""
        indices, pairs = [], []
        for index, row in enumerate(rows):
            verdict, truth = row.outcome, row.truth
            predicted = verdict.explanation if isinstance(verdict, TraceVerdict) else None
            if isinstance(predicted, str) and truth.explanation:
                clip = str(row.subject)
                pair = ExplanationPair(clip=clip, truth=truth.explanation, predicted=predicted)
                indices.append(index)
                pairs.append(pair)
        first, *others = (judge(pairs) for judge in self.judges)
        self.judgings.append(first)
        self.agreements.extend(
            compute_judge_agreement(first, second, seed=self.seed) for second in others
        )
        scores = dict(zip(indices, (ruling.score for ruling in first.judged), strict=True))
        return [replace(row, text_score=scores.get(i)) for i, row in enumerate(rows)]


@dataclass(slots=True)
class ReasonSimilarityScorer:
    """Scorer of the reasons in `realism` answers, by their sentence similarity to a person's reasons."""

    encoder: SentenceEncoder

    def __call__(self, rows: Rows) -> Rows:
        """Return the rows with the similarity between the reviewer's reasons and a person's reasons."""
        indices, pairs = [], []
        for index, row in enumerate(rows):
            verdict = row.outcome
            if isinstance(verdict, RealismVerdict):
                pair = ExplanationPair(
                    clip=str(row.subject),
                    truth=join_reasons(row.truth.problem, row.truth.adherence),
                    predicted=join_reasons(verdict.problem, verdict.adherence),
                )
                indices.append(index)
                pairs.append(pair)
        similarities = compare_reasons(pairs, self.encoder)
        scores = dict(zip(indices, (score for score, _ in similarities), strict=True))
        return [replace(row, text_score=scores.get(i)) for i, row in enumerate(rows)]
