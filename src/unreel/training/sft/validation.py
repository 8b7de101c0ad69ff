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
"""Questions that one device answers together."""


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
        most: Maximum number of questions.
        max_tokens: Maximum number of tokens of an answer.
        seed: Seed of the recipe.
    """

    def __init__(
        self,
        held_out: Sequence[TrainingExample],
        lessons: ExampleCollator,
        *,
        encoder: RequestEncoder,
        most: int,
        max_tokens: int,
        seed: int,
    ) -> None:
        self._questions = choose_validation_questions(held_out, most=most, seed=seed)
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
        # Every device takes as many turns: a sharded model works only with all of them.
        n_turns = -(-len(self._shown) // world)
        places = [turn * world + rank for turn in range(n_turns)]
        mine = [self._shown[place % len(self._shown)] for place in places]
        losses = [self._loss(teacher, shown) for shown in mine]
        texts = [
            text
            for start in range(0, n_turns, AT_ONCE)
            for text in self._answer(teacher, mine[start : start + AT_ONCE])
        ]
        seen = zip(places, losses, texts, strict=True)
        gathered = sorted(gather_object([each for each in seen if each[0] < len(self._shown)]))
        n_tokens = sum(n for _, (_, n), _ in gathered)
        asked: list[Asked] = [
            (self._shown[place].examples, self._shown[place].lessons[0], text)
            for place, _, text in gathered
        ]
        return TrainingValidationResult(
            step=teacher.state.global_step,
            loss=math.fsum(total for _, (total, _), _ in gathered) / max(1, n_tokens),
            cards=score_validation_answers([*asked, *self._failed], seed=self._seed),
        )

    def _lay_out(self) -> None:
        for examples in self._questions:
            lessons = [self._lessons.lesson(example) for example in examples]
            why = next((each for each in lessons if isinstance(each, Failure)), None)
            why = why or next(filter(None, map(self._impossible, lessons)), None)
            if why is None:
                shown = [each for each in lessons if not isinstance(each, Failure)]
                self._shown.append(_ValidationQuestion(examples, shown))
            else:
                self._failed.append((examples, why, ""))

    def _impossible(self, lesson: TrainingExampleInput | Failure) -> Failure | None:
        if isinstance(lesson, Failure):
            return lesson
        encoded = self._encoder.encode(lesson.sheet, lesson.target)
        return encoded if isinstance(encoded, Failure) else None

    def _loss(self, teacher: Any, shown: _ValidationQuestion) -> tuple[float, int]:
        """Compute the total loss over all answer tokens of the question, and the number of tokens."""
        batch = self._batch(teacher, [(each.sheet, each.target) for each in shown.lessons])
        n = int((batch["labels"][..., 1:] != IGNORED).sum())
        return float(teacher.compute_loss(teacher.model_wrapped, batch)) * n, n

    def _answer(self, teacher: Any, shown: Sequence[_ValidationQuestion]) -> list[str]:
        batch = self._batch(teacher, [(each.lessons[0].sheet, None) for each in shown])
        model = teacher.accelerator.unwrap_model(teacher.model_wrapped)
        with teacher.compute_loss_context_manager():
            made = model.generate(
                **batch,
                do_sample=False,
                max_new_tokens=self._max_tokens,
                eos_token_id=self._encoder.end_id,
                pad_token_id=self._encoder.pad_id,
                synced_gpus=teacher.is_fsdp_enabled,
            )
        answers = made[:, batch["input_ids"].shape[1] :]
        return [self._encoder.decode(answer) for answer in answers]

    def _batch(
        self, teacher: Any, asked: Sequence[tuple[ReviewRequest, str | None]]
    ) -> dict[str, Any]:
        encoded = [self._encoder.encode(sheet, target) for sheet, target in asked]
        fit = [each for each in encoded if not isinstance(each, Failure)]
        batch = self._encoder.collate(fit, pad="left" if asked[0][1] is None else "right")
        return {name: values.to(teacher.args.device) for name, values in batch.items()}
