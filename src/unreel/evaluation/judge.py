"""Judge of explanations: a pinned model that scores 0, 0.5 or 1; each pair of texts is sent once."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from unreel.core.answer import Usage
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Measured
from unreel.core.failure import Failure, FailureReason
from unreel.core.question import Condition, Instrument
from unreel.core.verdict import Unparsed
from unreel.engine.committer import CommitPace
from unreel.engine.run import ALL_FAILURES, run_pending_questions
from unreel.engine.stage import (
    InFlightLimitScope,
    Row,
    Stage,
    WorkerResources,
    convert_to_failed_row,
)
from unreel.evaluation.judge_rulings import (
    JudgeRuling,
    JudgeRulingStore,
    build_ruling_columns,
    sum_token_usages,
)
from unreel.evaluation.table_schemas import build_token_columns
from unreel.protocols.answer_text import strip_thinking
from unreel.protocols.trace.explanation_judge import (
    build_judge_prompt,
    parse_judge_score,
    quote_explanation_for_judge,
)
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.endpoint.budget import RequestBudget, SpendingSummary
from unreel.reviewers.factory import ReviewerFactory
from unreel.stats.agreement import cohen_kappa

TRIES: Final = 3
"""Maximum number of answers to request from a judge for one pair; without a readable one, it stays unscored."""
PROMPT_VERSION: Final = digest(build_judge_prompt("", ""))[:16]
"""Hash of the judge's prompt and its examples, which changes with every word of them."""
NO_TRUTH, NO_PREDICTION, UNREADABLE = "no-truth", "no-prediction", "unreadable"
IN_FLIGHT: Final = 16
"""Default number of concurrent pairs per judge."""
_INSTRUMENT: Final = Instrument("judge", 1)
_NOT_KEPT: Final = JudgeRuling(
    score=None, why=FailureReason.NOT_RECORDED.value, detail="no ruling is kept"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationPair:
    """Explanations of one clip: that of a person and that of a reviewer."""

    clip: str
    truth: str
    predicted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationRuling:
    """Ruling of a judge on the explanation of one clip."""

    clip: str
    ruling: JudgeRuling
    cached: bool = False
    """Whether the ruling was stored by an earlier call."""

    @property
    def score(self) -> float | None:
        """Return the ruling's score, which a row stores as `text_score`."""
        return self.ruling.score

    @property
    def why(self) -> str:
        """Return the reason for a missing score; empty if there is one."""
        return self.ruling.why


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRulings:
    """Rulings of one judge, in the order of the explanations, and their cost."""

    judge: str
    judged: tuple[ExplanationRuling, ...]
    spent: SpendingSummary | None
    """Requests and cost of this call; `None` if incomplete."""
    tokens: Usage | None
    """Tokens of all rulings, including earlier calls; each pair of texts counts once. `None` if not
    reported.
"""

    @property
    def n_scored(self) -> int:
        """Count the explanations with a score."""
        return sum(ruling.score is not None for ruling in self.judged)

    @property
    def unscored(self) -> Mapping[str, int]:
        """Count the explanations without a score, by reason."""
        return dict(sorted(Counter(ruling.why for ruling in self.judged if ruling.why).items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """Agreement of two judges beyond chance (Cohen's kappa), over the explanations that both scored."""

    kappa: Measured
    n_both: int
    n: int
    """Number of all explanations, scored or not."""


@runtime_checkable
class MeteredReviewer(Protocol):
    """Interface of a reviewer that counts its requests, tokens and cost."""

    @property
    def spending(self) -> SpendingSummary:
        """Return the requests, tokens and cost so far."""
        ...


class JudgeStage(Stage):
    """Stage that asks the judge for the score of a row's pair of texts, at most `TRIES` times."""

    def __init__(self, factory: ReviewerFactory, *, in_flight: int) -> None:
        self.resources = WorkerResources(in_flight=in_flight, limit=InFlightLimitScope.ALONE)
        self.spent: SpendingSummary | None = RequestBudget(price=factory.price).spending()
        """Requests and cost of this process, set when the stage is closed; `None` if the judge counts none."""
        self.n_rows = 0
        self._opener = factory

    def setup(self) -> None:
        self._judge = self._opener.open().reviewer

    async def __call__(self, row: Row) -> Row:
        self.n_rows += 1
        usages: list[Usage | None] = []
        reply = ""
        for attempt in range(TRIES):
            outcome = await self._judge.answer(_build_judge_request(row, attempt))
            if isinstance(outcome, Failure):
                usages.append(outcome.usage)
                return convert_to_failed_row(
                    row | build_token_columns(sum_token_usages(usages)), outcome
                )
            usages.append(outcome.usage)
            score = parse_judge_score(strip_thinking(outcome.text))
            if not isinstance(score, Unparsed):
                return row | build_ruling_columns(
                    JudgeRuling(score=score, usage=sum_token_usages(usages))
                )
            reply = score.found
        detail = f"{TRIES} answers were not 0, 0.5 or 1; the last was {reply!r}"
        unread = JudgeRuling(
            score=None, why=UNREADABLE, detail=detail, usage=sum_token_usages(usages)
        )
        return row | build_ruling_columns(unread)

    async def close(self) -> None:
        judge: object = self._judge
        self.spent = judge.spending if isinstance(judge, MeteredReviewer) else None
        await self._judge.close()


def judge_explanations(
    explained: Sequence[ExplanationPair],
    factory: ReviewerFactory,
    *,
    store: JudgeRulingStore,
    in_flight: int = IN_FLIGHT,
    pace: CommitPace | None = None,
) -> JudgeRulings:
    """Return the rulings on all pairs in `explained`, in order; only missing ones are requested.

    An answer other than 0, 0.5 and 1 is requested again, `TRIES` times in total, then the pair
    stays unscored. A failed request leaves its pair unscored with its cause, and the next call
    repeats it. Missing texts are not sent.

    Raises:
        UnreadableSourceError: Another process judges explanations of this run, or the stored
            rulings are damaged.
    """
    pairs = _select_complete_pairs(explained, factory.name)
    settled = {key for key, ruling in store.stored(pairs).items() if ruling.is_settled}
    due = {key: pair for key, pair in pairs.items() if key not in settled}
    stage = JudgeStage(factory, in_flight=in_flight)
    spent = stage.spent
    if due:
        summary = run_pending_questions(
            (_build_judge_row(key, pair, factory.name) for key, pair in due.items()),
            [stage],
            table=store.table,
            ledger=store.ledger(),
            retry_failed=ALL_FAILURES,
            pace=pace,
        )
        # After crashes rows run in a separate process, whose cost is not in `stage.spent`.
        spent = stage.spent if stage.n_rows == summary.done + summary.failed else None
    rulings = store.stored(pairs)
    return _build_judge_rulings(factory.name, explained, rulings, cached=settled, spent=spent)


def read_stored_rulings(
    explained: Sequence[ExplanationPair], judge: str, *, store: JudgeRulingStore
) -> JudgeRulings:
    """Return the stored rulings of `judge` on the pairs in `explained`, in order; nothing is sent."""
    rulings = store.stored(_select_complete_pairs(explained, judge))
    spent = RequestBudget().spending()
    return _build_judge_rulings(judge, explained, rulings, cached=rulings.keys(), spent=spent)


def compute_judge_agreement(
    first: JudgeRulings, second: JudgeRulings, *, seed: int
) -> JudgeAgreement:
    """Compute Cohen's kappa of two judges over the explanations that both scored.

    The bootstrap resamples clips.

    Raises:
        InvalidValueError: The judges did not judge the same explanations, or are the same judge.
    """
    if first.judge == second.judge:
        msg = f"both judges are {first.judge!r}. Name another model as the second judge"
        raise InvalidValueError(msg)
    if [ruling.clip for ruling in first.judged] != [ruling.clip for ruling in second.judged]:
        msg = "the judges did not judge the same explanations. Give both the same list"
        raise InvalidValueError(msg)
    pairs = zip(first.judged, second.judged, strict=True)
    scored = [(a, b) for a, b in pairs if a.score is not None and b.score is not None]
    kappa = cohen_kappa(
        [a.score for a, _ in scored],
        [b.score for _, b in scored],
        seed=seed,
        clusters=[a.clip for a, _ in scored],
    )
    return JudgeAgreement(kappa=kappa, n_both=len(scored), n=len(first.judged))


def _select_complete_pairs(
    explained: Sequence[ExplanationPair], judge: str
) -> dict[str, ExplanationPair]:
    return {
        _compute_ruling_key(judge, pair): pair
        for pair in explained
        if not _explain_missing_text(pair)
    }


def _build_judge_row(key: str, pair: ExplanationPair, judge: str) -> Row:
    return {
        "key": key,
        "judge": judge,
        "_prompt": build_judge_prompt(pair.truth, pair.predicted),
    }


def _build_judge_request(row: Row, attempt: int) -> ReviewRequest:
    return ReviewRequest(
        # A key per attempt, because the server may repeat the unreadable answer for the same key.
        key=digest(row["key"], str(attempt)),
        instrument=_INSTRUMENT,
        prompt=row["_prompt"],
        exhibits=(),
        condition=Condition(),
    )


def _build_judge_rulings(
    judge: str,
    explained: Sequence[ExplanationPair],
    rulings: Mapping[str, JudgeRuling],
    *,
    cached: Set[str],
    spent: SpendingSummary | None,
) -> JudgeRulings:
    return JudgeRulings(
        judge=judge,
        judged=tuple(
            _build_explanation_ruling(pair, _compute_ruling_key(judge, pair), rulings, cached)
            for pair in explained
        ),
        spent=spent,
        tokens=sum_token_usages(ruling.usage for ruling in rulings.values()),
    )


def _build_explanation_ruling(
    pair: ExplanationPair, key: str, rulings: Mapping[str, JudgeRuling], cached: Set[str]
) -> ExplanationRuling:
    reason = _explain_missing_text(pair)
    if reason:
        return ExplanationRuling(clip=pair.clip, ruling=JudgeRuling(score=None, why=reason))
    return ExplanationRuling(
        clip=pair.clip, ruling=rulings.get(key, _NOT_KEPT), cached=key in cached
    )


def _explain_missing_text(pair: ExplanationPair) -> str:
    """Return which text of a pair is missing, so that no judge gets it; empty if both exist."""
    if not quote_explanation_for_judge(pair.truth).strip():
        return NO_TRUTH
    return "" if quote_explanation_for_judge(pair.predicted).strip() else NO_PREDICTION


def _compute_ruling_key(judge: str, pair: ExplanationPair) -> str:
    texts = quote_explanation_for_judge(pair.truth), quote_explanation_for_judge(pair.predicted)
    return digest("judge", judge, PROMPT_VERSION, *texts)
