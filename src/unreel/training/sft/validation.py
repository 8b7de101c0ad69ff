"""Validation on held-out clips: the loss of the model in training, and its answers to questions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from accelerate.utils import gather_object

from unreel.core.failure import Failure
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.local.encoder import IGNORED, RequestEncoder
from unreel.training.examples.example import TrainingExample, TrainingExampleInput
from unreel.training.sft.batches import ExampleCollator
from unreel.training.sft.early_stopping import (
    Asked,
    TrainingValidationResult,
    choose_validation_questions,
    score_validation_answers,
)

AT_ONCE: Final = 8
"""Number of questions that one device answers in one batch."""


@dataclass(frozen=True, slots=True)
class _ValidationQuestion:
    """A question with its examples as model input; the examples differ only in their answers."""

    examples: Sequence[TrainingExample]
    lessons: Sequence[TrainingExampleInput]


class HoldoutEvaluator:
    """Evaluator of the model in training on the same held-out questions each time, on all devices.

    Args:
        held_out: Examples that are never trained on.
        lessons: Collator that converts the examples to model input.
        encoder: Encoder of the model.
        limit: Maximum number of questions.
        max_tokens: Maximum number of tokens of an answer.
        seed: Seed of the recipe.
    """

    def __init__(
        self,
        held_out: Sequence[TrainingExample],
        lessons: ExampleCollator,
        *,
        encoder: RequestEncoder,
        limit: int,
        max_tokens: int,
        seed: int,
    ) -> None:
        self._questions = choose_validation_questions(held_out, most=limit, seed=seed)
        self._lessons, self._encoder = lessons, encoder
        self._max_tokens, self._seed = max_tokens, seed
        self._shown: list[_ValidationQuestion] = []
        self._failed: list[Asked] = []

    def __call__(self, teacher: Any) -> TrainingValidationResult | None:
        """Validate the current model of the trainer `teacher`; return `None` if there is no question."""
        if not self._shown and not self._failed:
            self._lay_out()
        if not self._shown:
            return None
        world, rank = teacher.args.world_size, teacher.args.process_index
        # All devices take the same number of turns: a sharded model needs all devices.
        n_turns = -(-len(self._shown) // world)
        indices = [turn * world + rank for turn in range(n_turns)]
        mine = [self._shown[i % len(self._shown)] for i in indices]
        losses = [self._loss(teacher, question) for question in mine]
        texts = [
            text
            for start in range(0, n_turns, AT_ONCE)
            for text in self._answer(teacher, mine[start : start + AT_ONCE])
        ]
        rows = zip(indices, losses, texts, strict=True)
        gathered = sorted(gather_object([row for row in rows if row[0] < len(self._shown)]))
        n_tokens = sum(n for _, (_, n), _ in gathered)
        answered: list[Asked] = [
            (self._shown[i].examples, self._shown[i].lessons[0], text) for i, _, text in gathered
        ]
        return TrainingValidationResult(
            step=teacher.state.global_step,
            loss=math.fsum(total for _, (total, _), _ in gathered) / max(1, n_tokens),
            cards=score_validation_answers([*answered, *self._failed], seed=self._seed),
        )

    def _lay_out(self) -> None:
        for examples in self._questions:
            lessons = [self._lessons.lesson(example) for example in examples]
            reason = next((lesson for lesson in lessons if isinstance(lesson, Failure)), None)
            reason = reason or next(filter(None, map(self._impossible, lessons)), None)
            if reason is None:
                usable = [lesson for lesson in lessons if not isinstance(lesson, Failure)]
                self._shown.append(_ValidationQuestion(examples, usable))
            else:
                self._failed.append((examples, reason, ""))

    def _impossible(self, lesson: TrainingExampleInput | Failure) -> Failure | None:
        if isinstance(lesson, Failure):
            return lesson
        encoded = self._encoder.encode(lesson.sheet, lesson.target)
        return encoded if isinstance(encoded, Failure) else None

    def _loss(self, teacher: Any, question: _ValidationQuestion) -> tuple[float, int]:
        """Compute the total loss over all answer tokens of the question, and the number of tokens."""
        batch = self._batch(teacher, [(lesson.sheet, lesson.target) for lesson in question.lessons])
        n = int((batch["labels"][..., 1:] != IGNORED).sum())
        return float(teacher.compute_loss(teacher.model_wrapped, batch)) * n, n

    def _answer(self, teacher: Any, questions: Sequence[_ValidationQuestion]) -> list[str]:
        batch = self._batch(teacher, [(q.lessons[0].sheet, None) for q in questions])
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
        encoded = [self._encoder.encode(sheet, target) for sheet, target in requests]
        fit = [r for r in encoded if not isinstance(r, Failure)]
        batch = self._encoder.collate(fit, pad="left" if requests[0][1] is None else "right")
        return {name: values.to(teacher.args.device) for name, values in batch.items()}
