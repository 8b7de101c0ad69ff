"""GRPO training from recipe to model: a checkpoint answers questions and learns from the rewards."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from datasets import Dataset
from pydantic_core import to_jsonable_python
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Measured
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.reviewers.local.checkpoint import (
    read_checkpoint_input_spec,
    write_checkpoint_input_spec,
)
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.stats.bootstrap import bootstrap_mean
from unreel.training.checkpoints import TrainingCheckpointStore
from unreel.training.examples.example import ExampleOrder, TrainingExample
from unreel.training.model import (
    AnswerSampler,
    BaseModelFolder,
    build_checkpoint_input_spec,
    load_trainable_model,
)
from unreel.training.model_card import CheckpointModelCard, write_model_card
from unreel.training.recipe import AnswerRewardSection, TrainRecipe
from unreel.training.rewards.reward import (
    AnswerKey,
    PromptWithAnswerKey,
    QuestionWithTruths,
    group_examples_by_question,
)
from unreel.training.rewards.reward_settings import AnswerRewardSettings
from unreel.training.sft.batches import ExampleCollator, build_unusable_examples_error
from unreel.training.sft.trainer import build_trainer_arguments
from unreel.training.sft.validation import EarlyStoppingState, choose_validation_questions

ROW = "row"
KEY = "key"
PROMPT = "prompt"
_COMPARED = 8
"""Number of prompts that are compared with the encoder's prompts before a training starts."""


def compute_grpo_rewards(
    completions: Sequence[Any], key: Sequence[AnswerKey], **extra: Any
) -> list[float]:
    """Compute the reward of each answer for TRL, and log the mean of each reward part."""
    rewards = [k.mark(answer[0]["content"]) for answer, k in zip(completions, key, strict=True)]
    if log := extra.get("log_metric"):
        for name in sorted({part for reward in rewards for part in reward.parts}):
            parts = [reward.parts[name] for reward in rewards if name in reward.parts]
            log(f"paid/{name}", sum(parts) / len(parts))
    return [reward.total for reward in rewards]


class GrpoTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL carries no types here
    """TRL's GRPO trainer on the questions of a dataset, with the rewards of their answer keys.

    Args:
        model: Model to train. A `beta` in the configuration penalises the distance from its start.
        encoder: Encoder of the model, only for this trainer: its padding side is changed.
        prompts: The questions in order; each is loaded when needed.
        config: Training configuration.
        callbacks: Callbacks of its steps.
    """

    def __init__(
        self,
        model: Any,
        encoder: RequestEncoder,
        prompts: Sequence[PromptWithAnswerKey],
        *,
        config: GRPOConfig,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        encoder.processor.tokenizer.padding_side = "left"
        rows = Dataset.from_dict({ROW: range(len(prompts))})
        rows.set_transform(_PromptLoader(prompts, encoder))
        super().__init__(
            model=model,
            reward_funcs=compute_grpo_rewards,
            args=config,
            train_dataset=rows,
            processing_class=encoder.processor,
            callbacks=list(callbacks),
        )
        self.remove_callback(PrinterCallback)
        for row in range(min(_COMPARED, len(prompts))):
            request = prompts[row].request
            (tokens,), _, _ = self._tokenize_prompts([_raise_if_failure(encoder.converse(request))])
            if list(tokens) != _raise_if_failure(encoder.encode(request)).input_ids.tolist():
                raise InvalidSettingError(
                    "model.name",
                    "TRL writes another prompt than `unreel` sends to the model",
                    "Take the model's own chat template",
                )


@dataclass(frozen=True, slots=True)
class _PromptLoader:
    """Dataset transform that loads the prompts and answer keys of rows on demand."""

    puts: Sequence[PromptWithAnswerKey]
    encoder: RequestEncoder

    def __call__(self, rows: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        puts = {row: self.puts[row] for row in rows[ROW]}  # rows are repeated for each answer
        talks = {
            row: _raise_if_failure(self.encoder.converse(put.request)) for row, put in puts.items()
        }
        return {
            PROMPT: [talks[row] for row in rows[ROW]],
            KEY: [puts[row].key for row in rows[ROW]],
        }


def _raise_if_failure(result: Any) -> Any:
    if isinstance(result, Failure):
        raise InvalidSettingError(
            "the data", str(result), "Remove that clip, or change how it is shown"
        )
    return result


def build_grpo_config(
    recipe: TrainRecipe, reward: AnswerRewardSection, folder: Path, *, n_steps: int
) -> GRPOConfig:
    """Build TRL's config for the recipe.

    A step uses as many questions as a supervised step uses examples, with `generations` answers to
    each question; a device processes `batch_size` answers at once.
    """
    return GRPOConfig(
        **build_trainer_arguments(recipe, folder, n_steps=n_steps),
        gradient_accumulation_steps=recipe.optimise.accumulate * reward.generations,
        num_generations=reward.generations,
        scale_rewards="batch",  # scaling by group would undo the scales of labels
        max_completion_length=recipe.max_tokens,
        temperature=reward.temperature,
        beta=reward.kl,
        shuffle_dataset=False,
        save_strategy="no",
    )


RESULT = "reward.json"
_MAX_TRIES = 100
_BY_TRL = ("qwen2.5-vl", "qwen3-vl")
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
    if recipe.input != "frames":
        raise InvalidSettingError(
            "input", "TRL's GRPO takes pictures and no video", "Train a checkpoint on frames"
        )
    if recipe.model.family not in _BY_TRL:
        raise InvalidSettingError(
            "model.family",
            f"TRL's GRPO shows no pictures to {recipe.model.family}",
            "Use qwen2.5-vl or qwen3-vl",
        )
    if recipe.devices.count * recipe.devices.nodes > 1:
        raise InvalidSettingError(
            "devices.count", "GRPO on several devices has not been tried here", "Use one"
        )


def find_grpo_start_checkpoint(
    recipe: TrainRecipe, base: BaseModelFolder, folder: Path
) -> GrpoStartCheckpoint:
    """Find the checkpoint that the recipe's GRPO training starts from.

    Raise `InvalidSettingError` if the checkpoint has another family or input form than the recipe,
    or it is an adapter and `model.tune` is not `lora`.
    """
    input_spec, before = (
        build_checkpoint_input_spec(recipe, base),
        read_checkpoint_input_spec(base.folder),
    )
    if before is not None and (before.family, before.input) != (
        input_spec.family,
        input_spec.input,
    ):
        raise InvalidSettingError(
            "input" if before.family == input_spec.family else "model.family",
            f"the checkpoint is a {before.family} model that was taught by {before.input}",
            "Query it as it was trained",
        )
    if before is None or before.base is None:
        encoder = RequestEncoder(base.folder, input_spec)
        return GrpoStartCheckpoint(
            weights=base.folder, adapter=None, encoder=encoder, folder=folder
        )
    if recipe.model.tune != "lora":
        raise InvalidSettingError(
            "model.tune",
            "the checkpoint is an adapter",
            "Write tune = lora, so that the adapter is trained further",
        )
    same = input_spec.model_copy(update={"base": before.base, "base_digest": before.base_digest})
    encoder = RequestEncoder(base.folder, same)
    return GrpoStartCheckpoint(
        weights=Path(before.base), adapter=base.folder, encoder=encoder, folder=folder
    )


def run_grpo_training(
    recipe: TrainRecipe,
    reward: AnswerRewardSection,
    start: GrpoStartCheckpoint,
    *,
    dataset: "GrpoQuestionDataset",
    held_out_examples: Sequence[TrainingExample],
    callback: TrainerCallback,
) -> tuple[Any, GrpoResult]:
    """Train on all questions of `dataset` by GRPO, and return the model and the result."""
    questions = choose_validation_questions(
        held_out_examples, limit=recipe.watch.clips, seed=recipe.seed
    )
    validated = [group_examples_by_question(rows)[0] for rows in questions]
    model = load_trainable_model(
        recipe.model, start.weights, adapter=start.adapter, seed=recipe.seed
    )
    sampler = AnswerSampler(
        model, start.encoder, max_tokens=recipe.max_tokens, temperature=0, seed=recipe.seed
    )
    before = _compute_greedy_rewards(sampler, dataset, validated)
    n_steps = len(dataset) // (recipe.optimise.batch_size * recipe.optimise.accumulate)
    trainer = GrpoTrainer(
        model,
        start.encoder,
        dataset,
        config=build_grpo_config(recipe, reward, start.folder, n_steps=n_steps),
        callbacks=[callback],
    )
    trainer.train()
    history = trainer.state.log_history
    losses = [entry["loss"] for entry in history if "loss" in entry]
    return model, GrpoResult(
        step=trainer.state.global_step,
        loss=losses[-1] if losses else None,
        unshown=dataset.unshown,
        gain=bootstrap_mean(
            np.subtract(_compute_greedy_rewards(sampler, dataset, validated), before),
            seed=recipe.seed,
        ),
        terms=dataset.terms,
        rewards=tuple(entry["reward"] for entry in history if "reward" in entry),
    )


def save_grpo_model(
    model: Any, encoder: RequestEncoder, result: GrpoResult, card: CheckpointModelCard, folder: Path
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
    written.write(RESULT, json.dumps(to_jsonable_python(result), indent=1).encode())
    return checkpoints.finish("model", step=result.step).path


def _compute_greedy_rewards(
    sampler: AnswerSampler, dataset: "GrpoQuestionDataset", questions: Sequence[QuestionWithTruths]
) -> list[float]:
    """Return the rewards of greedy answers to `questions`; questions that cannot be shown are skipped."""
    earned = []
    for question in questions:
        put = dataset.show(question)
        texts = put if isinstance(put, Failure) else sampler.draw(put.request, 1)
        if isinstance(put, PromptWithAnswerKey) and not isinstance(texts, Failure):
            earned.append(put.key.mark(texts[0]).total)
    return earned


class GrpoQuestionDataset(Sequence[PromptWithAnswerKey]):
    """Questions of a GRPO training in order; the clips of a question are decoded when it is accessed.

    Args:
        order: Order of the first examples of the questions.
        questions: The questions.
        collator: Collator that converts the questions to model input.
        settings: Settings of the rewards.
        n: Number of questions to ask; the order itself is endless.
    """

    def __init__(
        self,
        order: ExampleOrder,
        questions: Sequence[QuestionWithTruths],
        collator: ExampleCollator,
        settings: AnswerRewardSettings,
        *,
        n: int,
    ) -> None:
        self._order, self._collator, self.terms = order, collator, settings
        self._questions = {question.example.key: question for question in questions}
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
        for further in range(place, place + _MAX_TRIES):
            question = self._questions[self._order[further].key]
            put = self.show(question)
            if isinstance(put, PromptWithAnswerKey):
                return put
            self.unshown[question.example.key] = [
                question.example.name,
                put.reason.value,
                put.detail,
            ]
        raise build_unusable_examples_error(self.unshown.values(), met=_MAX_TRIES)

    def show(self, question: QuestionWithTruths) -> PromptWithAnswerKey | Failure:
        """Return the question as model input, or the failure of its clips."""
        example = self._collator.load_input(question.example)
        if isinstance(example, Failure):
            return example
        return PromptWithAnswerKey(request=example.request, key=question.key(example, self.terms))


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
