"""Judge of explanations: a pinned model that scores 0, 0.5 or 1; each pair of texts is sent once."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Protocol, runtime_checkable

from unreel.asking.answer_table import build_token_columns
from unreel.core.answer import Usage
from unreel.core.chunks import iter_chunks
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidValueError
from unreel.core.estimate import Measured
from unreel.core.failure import (
    Failure,
    FailureReason,
    build_damaged_row_failure,
    parse_stored_failure,
)
from unreel.core.output_files import OutputDirectory
from unreel.core.question import Condition, Instrument
from unreel.core.verdict import Unparsed
from unreel.engine.committer import CommitPace
from unreel.engine.run import ALL_FAILURES, run_pending_questions
from unreel.engine.schema import TableSchema
from unreel.engine.stage import (
    InFlightLimitScope,
    Row,
    Stage,
    WorkerResources,
    convert_to_failed_row,
    is_failed_row,
)
from unreel.engine.table import LanceTable
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

RULINGS = TableSchema(
    name="rulings",
    version=1,
    columns={
        "judge": "string",
        "score": "float64",
        "why": "string",
        "detail": "string",
        "input_tokens": "int64",
        "output_tokens": "int64",
    },
)
"""Schema of rulings: one row per judge and pair of texts, with a score, or in `why` the reason for a missing one.

The key is a hash of the judge, its prompt and both texts; prompt and texts are not stored. Tokens are those of
all replies for the row.
"""
_SCORES = (0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRuling:
    """Ruling of a judge on a pair of explanations: a score, or why there is none."""

    score: float | None
    """Score 0, 0.5 or 1; `None`, never 0, for an unscored pair."""
    why: str = ""
    """Countable reason for a missing score; empty if there is a score."""
    detail: str = ""
    usage: Usage | None = None
    """Tokens of the judge's replies, as far as reported."""

    def __post_init__(self) -> None:
        if (self.score is None) != bool(self.why) or self.score not in (None, *_SCORES):
            raise InvalidValueError(f"score must be 0, 0.5 or 1, or None with a reason, got {self}")

    @property
    def is_final(self) -> bool:
        """Return whether the judge answered; a failed request can be retried."""
        return self.why not in ALL_FAILURES


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRulingStore:
    """Stored rulings of judges on the explanations in a run or in a file of answers."""

    table: LanceTable
    ledgers: Path
    """Local folder of the ledger of started requests."""

    def ledger(self) -> Path:
        """Return the file that logs the starts and finishes of requests to judges."""
        return OutputDirectory(self.ledgers).make() / "rulings.ledger"

    def stored(self, keys: Collection[str]) -> dict[str, JudgeRuling]:
        self.table.check()
        rulings: dict[str, JudgeRuling] = {}
        for chunk in iter_chunks(keys):
            rulings |= {row["key"]: parse_ruling_row(row) for row in self.table.get(chunk)}
        return rulings


def build_ruling_columns(ruling: JudgeRuling) -> Row:
    """Return the table columns that store `ruling`."""
    return {
        "score": ruling.score,
        "why": ruling.why or None,
        "detail": ruling.detail or None,
        **build_token_columns(ruling.usage),
    }


def parse_ruling_row(row: Row) -> JudgeRuling:
    """Return the ruling in a stored row; a failed request or damaged row is unscored, with the reason."""
    usage = None
    if row["input_tokens"] is not None and row["output_tokens"] is not None:
        usage = Usage(input_tokens=row["input_tokens"], output_tokens=row["output_tokens"])
    if is_failed_row(row):
        return _build_failed_ruling(
            parse_stored_failure(row["failure_reason"], row["failure_detail"]), usage
        )
    try:
        return JudgeRuling(
            score=row["score"], why=row["why"] or "", detail=row["detail"] or "", usage=usage
        )
    except InvalidValueError:
        return _build_failed_ruling(
            build_damaged_row_failure("neither a score nor a reason why there is none"), usage
        )


def _build_failed_ruling(failure: Failure, usage: Usage | None) -> JudgeRuling:
    return JudgeRuling(score=None, why=failure.reason.value, detail=failure.detail, usage=usage)


def sum_token_usages(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the sum of the reported token usages; `None` if none is reported."""
    known = [usage for usage in usages if usage is not None]
    return reduce(add, known) if known else None


TRIES = 3
"""Maximum number of answers to request from a judge for one pair; without a readable one, it stays unscored."""
PROMPT_VERSION = digest(build_judge_prompt("", ""))[:16]
"""Hash of the judge's prompt and its examples, which changes with every word of them."""
NO_TRUTH, NO_PREDICTION, UNREADABLE = "no-truth", "no-prediction", "unreadable"
IN_FLIGHT = 16
"""Default number of concurrent pairs per judge."""
_INSTRUMENT = Instrument("judge", 1)
_NOT_STORED = JudgeRuling(
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
            outcome = await self._judge.answer(
                ReviewRequest(
                    # A key per attempt, because the server may repeat the unreadable answer for the same key.
                    key=digest(row["key"], str(attempt)),
                    instrument=_INSTRUMENT,
                    prompt=row["_prompt"],
                    inputs=(),
                    condition=Condition(),
                )
            )
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
    repeats it. Missing texts are not sent. Raise `UnreadableSourceError` if another process judges
    explanations of this run, or the stored rulings are damaged.
    """
    pairs = _select_complete_pairs(explained, factory.name)
    cached = {key for key, ruling in store.stored(pairs).items() if ruling.is_final}
    due = {key: pair for key, pair in pairs.items() if key not in cached}
    stage = JudgeStage(factory, in_flight=in_flight)
    spent = stage.spent
    if due:
        summary = run_pending_questions(
            (
                {
                    "key": key,
                    "judge": factory.name,
                    "_prompt": build_judge_prompt(pair.truth, pair.predicted),
                }
                for key, pair in due.items()
            ),
            [stage],
            table=store.table,
            ledger=store.ledger(),
            retry_failed=ALL_FAILURES,
            pace=pace,
        )
        # After crashes rows run in a separate process, whose cost is not in `stage.spent`.
        spent = stage.spent if stage.n_rows == summary.done + summary.failed else None
    rulings = store.stored(pairs)
    return _build_judge_rulings(factory.name, explained, rulings, cached=cached, spent=spent)


def read_stored_rulings(
    explained: Sequence[ExplanationPair], judge: str, *, store: JudgeRulingStore
) -> JudgeRulings:
    """Return the stored rulings of `judge` on the pairs in `explained`, in order; nothing is sent."""
    rulings = store.stored(_select_complete_pairs(explained, judge))
    spent = RequestBudget().spending()
    return _build_judge_rulings(judge, explained, rulings, cached=rulings.keys(), spent=spent)


def compute_judge_agreement(
    first_rulings: JudgeRulings, second_rulings: JudgeRulings, *, seed: int
) -> JudgeAgreement:
    """Compute Cohen's kappa of two judges over the explanations that both scored.

    The bootstrap resamples clips. Raise `InvalidValueError` if the judges did not judge the same
    explanations, or are the same judge.
    """
    if first_rulings.judge == second_rulings.judge:
        raise InvalidValueError(
            f"both judges are {first_rulings.judge!r}. Name another model as the second judge"
        )
    if [ruling.clip for ruling in first_rulings.judged] != [
        ruling.clip for ruling in second_rulings.judged
    ]:
        raise InvalidValueError(
            "the judges did not judge the same explanations. Give both the same list"
        )
    pairs = zip(first_rulings.judged, second_rulings.judged, strict=True)
    scored = [(a, b) for a, b in pairs if a.score is not None and b.score is not None]
    kappa = cohen_kappa(
        [a.score for a, _ in scored],
        [b.score for _, b in scored],
        seed=seed,
        clusters=[a.clip for a, _ in scored],
    )
    return JudgeAgreement(kappa=kappa, n_both=len(scored), n=len(first_rulings.judged))


def _select_complete_pairs(
    explained: Sequence[ExplanationPair], judge: str
) -> dict[str, ExplanationPair]:
    return {
        _compute_ruling_key(judge, pair): pair
        for pair in explained
        if not _explain_missing_text(pair)
    }


def _build_judge_rulings(
    judge: str,
    explained: Sequence[ExplanationPair],
    rulings: Mapping[str, JudgeRuling],
    *,
    cached: Set[str],
    spent: SpendingSummary | None,
) -> JudgeRulings:
    judged = []
    for pair in explained:
        key, reason = _compute_ruling_key(judge, pair), _explain_missing_text(pair)
        ruling = rulings.get(key, _NOT_STORED)
        if reason:
            ruling = JudgeRuling(score=None, why=reason)
        judged.append(
            ExplanationRuling(clip=pair.clip, ruling=ruling, cached=not reason and key in cached)
        )
    return JudgeRulings(
        judge=judge,
        judged=tuple(judged),
        spent=spent,
        tokens=sum_token_usages(ruling.usage for ruling in rulings.values()),
    )


def _explain_missing_text(pair: ExplanationPair) -> str:
    """Return which text of a pair is missing, so that no judge gets it; empty if both exist."""
    if not quote_explanation_for_judge(pair.truth).strip():
        return NO_TRUTH
    return "" if quote_explanation_for_judge(pair.predicted).strip() else NO_PREDICTION


def _compute_ruling_key(judge: str, pair: ExplanationPair) -> str:
    texts = quote_explanation_for_judge(pair.truth), quote_explanation_for_judge(pair.predicted)
    return digest("judge", judge, PROMPT_VERSION, *texts)
