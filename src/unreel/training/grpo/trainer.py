"""TRL's GRPO trainer, with frames and timestamps as input and the rewards of the recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.training.recipe import AnswerRewardSection, TrainRecipe
from unreel.training.rewards.answer_key import AnswerKey, PromptWithAnswerKey
from unreel.training.sft.trainer import build_trainer_arguments

ROW: Final = "row"
KEY: Final = "key"
PROMPT: Final = "prompt"
_COMPARED: Final = 8
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
        puts: The questions in order; each is loaded when needed.
        config: Training configuration.
        callbacks: Callbacks of its steps.
    """

    def __init__(
        self,
        model: Any,
        encoder: RequestEncoder,
        puts: Sequence[PromptWithAnswerKey],
        *,
        config: GRPOConfig,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        encoder.processor.tokenizer.padding_side = "left"
        rows = Dataset.from_dict({ROW: range(len(puts))})
        rows.set_transform(_PromptLoader(puts, encoder))
        super().__init__(
            model=model,
            reward_funcs=compute_grpo_rewards,
            args=config,
            train_dataset=rows,
            processing_class=encoder.processor,
            callbacks=list(callbacks),
        )
        self.remove_callback(PrinterCallback)
        for row in range(min(_COMPARED, len(puts))):
            self._require_same_prompt(puts[row].sheet, encoder)

    def _require_same_prompt(self, sheet: ReviewRequest, encoder: RequestEncoder) -> None:
        """Raise `InvalidSettingError` if TRL's tokens for the prompt differ from the encoder's."""
        (tokens,), _, _ = self._tokenize_prompts([_raise_if_failure(encoder.converse(sheet))])
        if list(tokens) != _raise_if_failure(encoder.encode(sheet)).input_ids.tolist():
            setting, problem = (
                "model.name",
                "TRL writes another prompt than `unreel` sends to the model",
            )
            remedy = "Take the model's own chat template, or reward.method = rejection"
            raise InvalidSettingError(setting, problem, remedy)


@dataclass(frozen=True, slots=True)
class _PromptLoader:
    """Dataset transform that loads the prompts and answer keys of rows on demand."""

    puts: Sequence[PromptWithAnswerKey]
    encoder: RequestEncoder

    def __call__(self, rows: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        puts = {row: self.puts[row] for row in rows[ROW]}  # rows are repeated for each answer
        talks = {
            row: _raise_if_failure(self.encoder.converse(put.sheet)) for row, put in puts.items()
        }
        return {
            PROMPT: [talks[row] for row in rows[ROW]],
            KEY: [puts[row].key for row in rows[ROW]],
        }


def _raise_if_failure(result: Any) -> Any:
    if isinstance(result, Failure):
        setting, remedy = "the data", "Remove that clip, or change how it is shown"
        raise InvalidSettingError(setting, str(result), remedy)
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
