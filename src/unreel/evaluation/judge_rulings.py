"""Stored rulings of judges on explanations; the texts themselves are not stored."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Final

from unreel.core.answer import Usage
from unreel.core.chunks import iter_chunks
from unreel.core.errors import InvalidValueError
from unreel.core.failure import Failure, build_damaged_row_failure, parse_stored_failure
from unreel.core.output_files import OutputDirectory
from unreel.engine.run import ALL_FAILURES
from unreel.engine.stage import Row, is_failed_row
from unreel.engine.table import LanceTable
from unreel.evaluation.table_schemas import build_token_columns

_SCORES: Final = (0.0, 0.5, 1.0)


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
            msg = f"a ruling is 0, 0.5 or 1, or says why it is none, got {self}. Parse it first"
            raise InvalidValueError(msg)

    @property
    def is_settled(self) -> bool:
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
        """Return the stored rulings under `keys`."""
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
