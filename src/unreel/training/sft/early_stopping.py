"""Validation results on held-out examples, and the early-stopping state that they update."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_jsonable_python

from unreel.core.content_ids import digest
from unreel.core.estimate import Estimate, Scorecard
from unreel.core.failure import Failure
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.protocol import ScoredQuestion, get_protocol
from unreel.training.examples.example import TrainingExample, TrainingExampleInput

Asked = tuple[Sequence[TrainingExample], TrainingExampleInput | Failure, str]
"""Rows of a question, its model input or a failure, and the text of the model's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingValidationResult:
    """Result of a validation during training: loss and scorecards on held-out examples at one step."""

    step: int
    loss: float
    cards: tuple[Scorecard, ...]
    """Scorecard of each protocol over the validation clips."""

    def figures(self) -> dict[str, float]:
        """Return the value of every measured metric of the validation, by protocol and metric name."""
        return {
            f"{card.instrument.protocol} {metric.name}": metric.value.value
            for card in self.cards
            for metric in card.metrics
            if isinstance(metric.value, Estimate)
        }

    def written(self) -> dict[str, Any]:
        """Return the validation result as JSON-compatible values."""
        document: dict[str, Any] = to_jsonable_python(self)
        return document


@dataclass(slots=True)
class EarlyStoppingState:
    """State of early stopping: the best step, the last validation, and why the training ended."""

    best_step: int | None = None
    best_loss: float | None = None
    since_best: int = 0
    last: Mapping[str, Any] | None = None
    """Last validation result, as JSON-compatible values."""
    unshown: dict[str, list[str]] = field(default_factory=dict)
    """Name, failure reason and detail of each example that could not be trained on, by key."""
    ended: str = ""
    """Reason why the training ended; "" while it runs."""

    def note(self, look: TrainingValidationResult) -> bool:
        """Add the validation result `look` to the state; return whether it is the best so far."""
        self.last = look.written()
        is_best = self.best_loss is None or look.loss < self.best_loss
        self.since_best = 0 if is_best else self.since_best + 1
        if is_best:
            self.best_step, self.best_loss = look.step, look.loss
        return is_best


def choose_validation_questions(
    held_out: Sequence[TrainingExample], *, most: int, seed: int
) -> list[list[TrainingExample]]:
    """Choose every validation's held-out questions by hash, independent of other clips."""
    rows: dict[str, list[TrainingExample]] = {}
    for example in held_out:
        rows.setdefault(example.question.key(""), []).append(example)
    keys = sorted(rows, key=lambda key: digest("look", str(seed), key))
    return [rows[key] for key in keys[:most]]


def score_validation_answers(answered: Sequence[Asked], *, seed: int) -> tuple[Scorecard, ...]:
    """Return one scorecard per protocol for the model's answers to held-out questions."""
    rows: dict[str, list[ScoredQuestion[Any, Any]]] = {}
    for examples, shown, text in answered:
        for example in examples:
            outcome = shown if isinstance(shown, Failure) else _parse_validation_answer(shown, text)
            row = ScoredQuestion(
                subject=example.question.subject,
                truth=example.truth,
                outcome=outcome,
                source=example.source,
                creator=example.creator,
            )
            rows.setdefault(example.question.instrument.protocol, []).append(row)
    return tuple(get_protocol(name).score(scored, seed=seed) for name, scored in rows.items())


def _parse_validation_answer(lesson: TrainingExampleInput, text: str) -> Any:
    question = lesson.example.question
    return parse_answer_text(
        text,
        get_protocol(question.instrument.protocol),
        prompt=question.condition.prompt,
        mode="strict",
        box_space=lesson.box_space,
        size=lesson.sheet.exhibits[0].clip.size,
    )
