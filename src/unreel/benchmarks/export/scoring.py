"""Answers to exported questions: read and scored as `unreel` itself does it."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from unreel.benchmarks.export.item import ExportItem, ExportRecipe, read_truths
from unreel.core.estimate import Estimate, Scorecard
from unreel.core.failure import Failure, FailureReason
from unreel.protocols.parse_answer import read_text
from unreel.protocols.protocol import ScoredQuestion, get_protocol

NO_REPLIES: Final = ("[LMMS_EVAL_REQUEST_FAILED", "Failed to obtain answer via API")
"""Prefixes of the texts of lmms-eval 0.7 and VLMEvalKit for a request without an answer."""

_COUNTS: Final = ("questions", "answered")
_MORE_IS_BETTER: Final = {"more": True, "less": False, "neither": None}


def read_reply(recipe: ExportRecipe, item: ExportItem, text: str) -> Any:
    """Return the verdict in `text`, or the `Failure` that it encodes: never a guess, never a score."""
    if not text.strip():
        return Failure(FailureReason.EMPTY_REPLY, "the tool handed over no text")
    if text.lstrip().startswith(NO_REPLIES):
        return Failure(FailureReason.SERVER_ERROR, text.strip()[:200])
    return read_text(
        text,
        recipe.instrument,
        prompt=recipe.prompt,
        mode=recipe.mode,
        box_space=recipe.box_space if item.width else None,
        size=(item.width, item.height),
    )


def score_replies(
    recipe: ExportRecipe, replies: Iterable[tuple[ExportItem, str | Failure]]
) -> Scorecard:
    """Score the raw text of `replies` with unreel's own parser and formulas; return the scorecard."""
    rows = [
        row
        for item, reply in replies
        for row in _build_scored_questions(
            recipe, item, reply if isinstance(reply, Failure) else read_reply(recipe, item, reply)
        )
    ]
    return recipe.instrument.score(rows, seed=recipe.seed)


def list_figures(card: Scorecard) -> dict[str, float]:
    """Return `card` as numbers by name: counts, then metrics with interval, n and parse coverage.

    A metric that was not measured is omitted, not 0.
    """
    figures: dict[str, float] = {"questions": card.n_questions, "answered": card.n_answered}
    figures |= {f"failed: {reason}": n for reason, n in card.failures.items()}
    figures |= {f"unread: {part}": n for part, n in card.unparsed.items()}
    figures |= {f"clips: {what}": n for what, n in card.confusion.items()}
    for metric in card.metrics:
        value = metric.value
        if isinstance(value, Estimate):
            figures[metric.name] = value.value
            figures[f"{metric.name} (low)"] = value.low
            figures[f"{metric.name} (high)"] = value.high
            figures[f"{metric.name} (n)"] = value.n
            figures[f"{metric.name} (parsed)"] = metric.coverage.parsed
            figures[f"{metric.name} (asked)"] = metric.coverage.asked
    return figures


def list_reported_figures(name: str) -> Iterator[tuple[str, bool | None]]:
    """Return the metrics that a task of that protocol reports, and whether more is better (None: neither)."""
    figures = get_protocol(name).figures
    for metric in figures.exported:
        yield metric, _MORE_IS_BETTER[figures[metric].better]
        for part in ("low", "high", "n"):
            yield f"{metric} ({part})", None
    for count in _COUNTS:
        yield count, None


def _build_scored_questions(
    recipe: ExportRecipe, item: ExportItem, outcome: Any
) -> list[ScoredQuestion[Any, Any]]:
    return [
        ScoredQuestion(
            subject=item.subject,
            truth=truth,
            outcome=outcome,
            source=item.source,
            creator=item.creator,
            difficulty=item.difficulty,
        )
        for truth in read_truths(recipe, item)
    ]
