"""Validation on held-out clips: the loss of the model in training, its answers, and early stopping."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accelerate.utils import gather_object
from pydantic_core import to_jsonable_python

from unreel.core.content_ids import digest
from unreel.core.estimate import Estimate, Scorecard
from unreel.core.failure import Failure
from unreel.protocols.answer_text import parse_answer_text
from unreel.protocols.protocol import ScoredQuestion, get_protocol
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.local.encoder import IGNORED, RequestEncoder
from unreel.training.examples.example import TrainingExample, TrainingExampleInput
from unreel.training.sft.batches import ExampleCollator

ValidationAnswer = tuple[Sequence[TrainingExample], TrainingExampleInput | Failure, str]
"""Rows of a question, its model input or a failure, and the text of the model's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingValidationResult:
    """Result of a validation during training: loss and scorecards on held-out examples at one step."""

    step: int
    loss: float
    cards: tuple[Scorecard, ...]
    """Scorecard of each protocol over the validation clips."""

    def metric_values(self) -> dict[str, float]:
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

    def note(self, result: TrainingValidationResult) -> bool:
        """Add the validation result `result` to the state; return whether it is the best so far."""
        self.last = result.written()
        is_best = self.best_loss is None or result.loss < self.best_loss
        self.since_best = 0 if is_best else self.since_best + 1
        if is_best:
            self.best_step, self.best_loss = result.step, result.loss
        return is_best


def choose_validation_questions(
    held_out_examples: Sequence[TrainingExample], *, limit: int, seed: int
) -> list[list[TrainingExample]]:
    """Choose every validation's held-out questions by hash, independent of other clips."""
    rows: dict[str, list[TrainingExample]] = {}
    for example in held_out_examples:
        rows.setdefault(example.question.key(""), []).append(example)
    keys = sorted(rows, key=lambda key: digest("look", str(seed), key))
    return [rows[key] for key in keys[:limit]]


def score_validation_answers(
    answered: Sequence[ValidationAnswer], *, seed: int
) -> tuple[Scorecard, ...]:
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


def _parse_validation_answer(example: TrainingExampleInput, text: str) -> Any:
    question = example.example.question
    return parse_answer_text(
        text,
        get_protocol(question.instrument.protocol),
        prompt=question.condition.prompt,
        mode="strict",
        box_space=example.box_space,
        size=example.request.inputs[0].clip.size,
    )


AT_ONCE = 8
"""Number of questions that one device answers in one batch."""


class HoldoutEvaluator:
    """Evaluator of the model in training on the same held-out questions each time, on all devices.

    Args:
        held_out_examples: Examples that are never trained on.
        collator: Collator that converts the examples to model input.
        encoder: Encoder of the model.
        limit: Maximum number of questions.
        max_tokens: Maximum number of tokens of an answer.
        seed: Seed of the recipe.
    """

    def __init__(
        self,
        held_out_examples: Sequence[TrainingExample],
        collator: ExampleCollator,
        *,
        encoder: RequestEncoder,
        limit: int,
        max_tokens: int,
        seed: int,
    ) -> None:
        self._questions = choose_validation_questions(held_out_examples, limit=limit, seed=seed)
        self._collator, self._encoder = collator, encoder
        self._max_tokens, self._seed = max_tokens, seed
        self._shown: list[tuple[Sequence[TrainingExample], Sequence[TrainingExampleInput]]] = []
        self._failed: list[ValidationAnswer] = []

    def __call__(self, teacher: Any) -> TrainingValidationResult | None:
        """Validate the current model of the trainer `teacher`; return `None` without a question."""
        if not self._shown and not self._failed:
            for examples in self._questions:
                loaded = [self._collator.load_input(example) for example in examples]
                inputs = [each for each in loaded if not isinstance(each, Failure)]
                encoded = (self._encoder.encode(each.request, each.target) for each in inputs)
                results = loaded if len(inputs) < len(loaded) else encoded
                reason = next((each for each in results if isinstance(each, Failure)), None)
                if reason is None:
                    self._shown.append((examples, inputs))
                else:
                    self._failed.append((examples, reason, ""))
        if not self._shown:
            return None
        world, rank = teacher.args.world_size, teacher.args.process_index
        # All devices take the same number of turns: a sharded model needs all devices.
        n_turns = -(-len(self._shown) // world)
        indices = [turn * world + rank for turn in range(n_turns)]
        mine = [self._shown[i % len(self._shown)][1] for i in indices]
        losses = [self._loss(teacher, inputs) for inputs in mine]
        texts = [
            text
            for start in range(0, n_turns, AT_ONCE)
            for text in self._answer(teacher, mine[start : start + AT_ONCE])
        ]
        rows = zip(indices, losses, texts, strict=True)
        gathered = sorted(gather_object([row for row in rows if row[0] < len(self._shown)]))
        n_tokens = sum(n for _, (_, n), _ in gathered)
        answered: list[ValidationAnswer] = [
            (self._shown[i][0], self._shown[i][1][0], text) for i, _, text in gathered
        ]
        return TrainingValidationResult(
            step=teacher.state.global_step,
            loss=math.fsum(total for _, (total, _), _ in gathered) / max(1, n_tokens),
            cards=score_validation_answers([*answered, *self._failed], seed=self._seed),
        )

    def _loss(self, teacher: Any, inputs: Sequence[TrainingExampleInput]) -> tuple[float, int]:
        """Compute the total loss over all answer tokens of a question, and the number of tokens."""
        batch = self._batch(teacher, [(example.request, example.target) for example in inputs])
        n = int((batch["labels"][..., 1:] != IGNORED).sum())
        return float(teacher.compute_loss(teacher.model_wrapped, batch)) * n, n

    def _answer(
        self, teacher: Any, questions: Sequence[Sequence[TrainingExampleInput]]
    ) -> list[str]:
        batch = self._batch(teacher, [(inputs[0].request, None) for inputs in questions])
        model = teacher.accelerator.unwrap_model(teacher.model_wrapped)
        with teacher.compute_loss_context_manager():
            output = model.generate(
                **batch,
                do_sample=False,
                max_new_tokens=self._max_tokens,
                eos_token_id=self._encoder.end_id,
                pad_token_id=self._encoder.pad_id,
                synced_gpus=teacher.is_fsdp_enabled,
            )
        answers = output[:, batch["input_ids"].shape[1] :]
        return [self._encoder.decode(answer) for answer in answers]

    def _batch(
        self, teacher: Any, requests: Sequence[tuple[ReviewRequest, str | None]]
    ) -> dict[str, Any]:
        encoded = [self._encoder.encode(request, target) for request, target in requests]
        fit = [r for r in encoded if not isinstance(r, Failure)]
        batch = self._encoder.collate(fit, pad="left" if requests[0][1] is None else "right")
        return {name: values.to(teacher.args.device) for name, values in batch.items()}
