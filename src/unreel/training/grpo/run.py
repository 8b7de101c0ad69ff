"""GRPO training from recipe to model: a checkpoint answers questions and learns from the rewards."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, overload

import numpy as np
from pydantic_core import to_jsonable_python
from transformers import TrainerCallback

from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Measured
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.reviewers.local.input_format import (
    read_checkpoint_input_spec,
    write_checkpoint_input_spec,
)
from unreel.stats.bootstrap import bootstrap_mean
from unreel.training.checkpoints import TrainingCheckpointStore
from unreel.training.examples.example import TrainingExample
from unreel.training.examples.order import ExampleOrder
from unreel.training.model import (
    AnswerSampler,
    BaseModelFolder,
    build_checkpoint_input_spec,
    load_trainable_model,
)
from unreel.training.model_card import CheckpointModelCard, write_model_card
from unreel.training.recipe import AnswerRewardSection, TrainRecipe
from unreel.training.rewards.answer_key import (
    PromptWithAnswerKey,
    QuestionWithTruths,
    group_examples_by_question,
)
from unreel.training.rewards.reward_settings import AnswerRewardSettings
from unreel.training.sft.batches import ExampleCollator, build_unusable_examples_error
from unreel.training.sft.early_stopping import EarlyStoppingState, choose_validation_questions

RESULT: Final = "reward.json"
_MOST_TRIES: Final = 100
_BY_TRL: Final = ("qwen2.5-vl", "qwen3-vl")
"""Model families whose images TRL's trainer passes on completely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpoResult:
    """Result of a GRPO training."""

    step: int
    loss: float | None
    unshown: dict[str, list[str]]
    gain: Measured
    """Mean increase of the reward of greedy answers to held-out questions."""
    terms: AnswerRewardSettings
    rewards: tuple[float, ...]
    """Mean reward of the sampled answers at each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpoStartCheckpoint:
    """Checkpoint from which a GRPO training starts, with its encoder."""

    weights: Path
    """Folder with the weights of the complete model."""
    adapter: Path | None
    """Folder of the adapter, if the checkpoint is an adapter."""
    encoder: RequestEncoder
    """Encoder of the checkpoint and of the trained model."""
    folder: Path
    """Folder of the training."""


def require_grpo_support(recipe: TrainRecipe) -> None:
    """Raise `InvalidSettingError` if TRL's GRPO lacks the recipe's input, family or devices."""
    remedy = "Write reward.method = rejection"
    if recipe.input != "frames":
        setting, problem = "input", "TRL's GRPO takes pictures and no video"
        raise InvalidSettingError(setting, problem, f"{remedy}, or train a checkpoint on frames")
    if recipe.model.family not in _BY_TRL:
        setting, problem = "model.family", f"TRL's GRPO shows no pictures to {recipe.model.family}"
        raise InvalidSettingError(setting, problem, remedy)
    if recipe.devices.count * recipe.devices.nodes > 1:
        setting, problem = "devices.count", "GRPO on several devices has not been tried here"
        raise InvalidSettingError(setting, problem, f"Use one. {remedy} for several")


def find_grpo_start_checkpoint(
    recipe: TrainRecipe, base: BaseModelFolder, folder: Path
) -> GrpoStartCheckpoint:
    """Find the checkpoint that the recipe's GRPO training starts from.

    Raises:
        InvalidSettingError: The checkpoint has another family or input form than the recipe, or it
            is an adapter and `model.tune` is not `lora`.
    """
    taught, before = (
        build_checkpoint_input_spec(recipe, base),
        read_checkpoint_input_spec(base.folder),
    )
    if before is not None and (before.family, before.input) != (taught.family, taught.input):
        setting = "input" if before.family == taught.family else "model.family"
        problem = f"the checkpoint is a {before.family} model that was taught by {before.input}"
        raise InvalidSettingError(setting, problem, "Query it as it was trained")
    if before is None or before.base is None:
        encoder = RequestEncoder.open(base.folder, taught)
        return GrpoStartCheckpoint(
            weights=base.folder, adapter=None, encoder=encoder, folder=folder
        )
    if recipe.model.tune != "lora":
        setting, problem = "model.tune", "the checkpoint is an adapter"
        raise InvalidSettingError(setting, problem, "Write tune = lora: it goes on learning")
    same = taught.model_copy(update={"base": before.base, "base_digest": before.base_digest})
    encoder = RequestEncoder.open(base.folder, same)
    return GrpoStartCheckpoint(
        weights=Path(before.base), adapter=base.folder, encoder=encoder, folder=folder
    )


def run_grpo_training(
    recipe: TrainRecipe,
    reward: AnswerRewardSection,
    start: GrpoStartCheckpoint,
    *,
    puts: "GrpoQuestionDataset",
    held_out: Sequence[TrainingExample],
    callback: TrainerCallback,
) -> tuple[Any, GrpoResult]:
    """Train on all questions of `puts` by GRPO, and return the model and the result."""
    from unreel.training.grpo.trainer import (  # imports vLLM if it is installed
        GrpoTrainer,
        build_grpo_config,
    )

    questions = choose_validation_questions(held_out, most=recipe.watch.clips, seed=recipe.seed)
    validated = [group_examples_by_question(rows)[0] for rows in questions]
    model = load_trainable_model(
        recipe.model, start.weights, adapter=start.adapter, seed=recipe.seed
    )
    sampler = AnswerSampler(
        model, start.encoder, max_tokens=recipe.max_tokens, temperature=0, seed=recipe.seed
    )
    before = _compute_greedy_rewards(sampler, puts, validated)
    n_steps = len(puts) // (recipe.optimise.batch_size * recipe.optimise.accumulate)
    trainer = GrpoTrainer(
        model,
        start.encoder,
        puts,
        config=build_grpo_config(recipe, reward, start.folder, n_steps=n_steps),
        callbacks=[callback],
    )
    trainer.train()
    history = trainer.state.log_history
    losses = [entry["loss"] for entry in history if "loss" in entry]
    return model, GrpoResult(
        step=trainer.state.global_step,
        loss=losses[-1] if losses else None,
        unshown=puts.unshown,
        gain=bootstrap_mean(
            np.subtract(_compute_greedy_rewards(sampler, puts, validated), before), seed=recipe.seed
        ),
        terms=puts.terms,
        rewards=tuple(entry["reward"] for entry in history if "reward" in entry),
    )


def save_grpo_model(
    model: Any,
    encoder: RequestEncoder,
    improved: GrpoResult,
    card: CheckpointModelCard,
    folder: Path,
) -> Path:
    """Write the model, its card and its result atomically to `folder`/model, and return that path."""
    checkpoints = TrainingCheckpointStore(folder)
    draft = checkpoints.begin("model")
    # A second adapter may exist: the reference of the KL penalty, which is not saved.
    only = {"selected_adapters": ["default"]} if hasattr(model, "peft_config") else {}
    model.save_pretrained(draft, **only)
    encoder.save(draft)
    write_checkpoint_input_spec(encoder.taught, draft)
    written = OutputDirectory(draft, published=True)
    write_model_card(card, written)
    written.write(RESULT, json.dumps(to_jsonable_python(improved), indent=1).encode())
    return checkpoints.finish("model", step=improved.step).path


def _compute_greedy_rewards(
    sampler: AnswerSampler, puts: "GrpoQuestionDataset", questions: Sequence[QuestionWithTruths]
) -> list[float]:
    """Return the rewards of greedy answers to `questions`; questions that cannot be shown are skipped."""
    earned = []
    for question in questions:
        put = puts.show(question)
        texts = put if isinstance(put, Failure) else sampler.draw(put.sheet, 1)
        if isinstance(put, PromptWithAnswerKey) and not isinstance(texts, Failure):
            earned.append(put.key.mark(texts[0]).total)
    return earned


class GrpoQuestionDataset(Sequence[PromptWithAnswerKey]):
    """Questions of a GRPO training in order; the clips of a question are decoded when it is accessed.

    Args:
        order: Order of the first examples of the questions.
        asked: The questions.
        lessons: Collator that converts the questions to model input.
        terms: Settings of the rewards.
        n: Number of questions to ask; the order itself is endless.
    """

    def __init__(
        self,
        order: ExampleOrder,
        questions: Sequence[QuestionWithTruths],
        lessons: ExampleCollator,
        terms: AnswerRewardSettings,
        *,
        n: int,
    ) -> None:
        self._order, self._lessons, self.terms = order, lessons, terms
        self._asked = {question.example.key: question for question in questions}
        self._n = n
        self.unshown: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> PromptWithAnswerKey: ...
    @overload
    def __getitem__(self, place: slice) -> list[PromptWithAnswerKey]: ...
    def __getitem__(self, place: int | slice) -> PromptWithAnswerKey | list[PromptWithAnswerKey]:
        """Return the question at `place`, or the next question that can be shown."""
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        for further in range(place, place + _MOST_TRIES):
            asked = self._asked[self._order[further].key]
            put = self.show(asked)
            if isinstance(put, PromptWithAnswerKey):
                return put
            self.unshown[asked.example.key] = [asked.example.name, put.reason.value, put.detail]
        raise build_unusable_examples_error(self.unshown.values(), met=_MOST_TRIES)

    def show(self, question: QuestionWithTruths) -> PromptWithAnswerKey | Failure:
        """Return the question as model input, or the failure of its clips."""
        lesson = self._lessons.lesson(question.example)
        if isinstance(lesson, Failure):
            return lesson
        return PromptWithAnswerKey(sheet=lesson.sheet, key=question.key(lesson, self.terms))


class GrpoTrainerCallback(TrainerCallback):  # type: ignore[misc]  # transformers carries no types here
    """Trainer callback that reports each step and stops the training on request.

    Args:
        on_step: Callback with the step, its loss and the early-stopping state.
        should_stop: Whether the user requested a stop.
    """

    def __init__(self, on_step: Any, should_stop: Any) -> None:
        self._on_step, self._should_stop = on_step, should_stop
        self.vigil = EarlyStoppingState()

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> Any:
        """Stop the training if the user requested it."""
        if self._should_stop():
            control.should_training_stop = True
        return control

    def on_log(self, _args: Any, state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        """Report the step and its loss."""
        if logs and "loss" in logs:
            self._on_step(state.global_step, logs["loss"], self.vigil)
