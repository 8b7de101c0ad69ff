"""Sampling of a model's own answers for rejection sampling, with their rewards."""

from dataclasses import replace
from pathlib import Path

import torch

from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.engine.storage_access import ClipAccessSettings
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.reviewers.local.input_format import read_checkpoint_input_spec
from unreel.reviewers.local.loading import load_local_model
from unreel.training.examples.order import ExampleOrder
from unreel.training.examples.reading import TrainingExampleSet
from unreel.training.model import (
    AnswerSampler,
    BaseModelFolder,
    build_checkpoint_input_spec,
    find_base_model,
)
from unreel.training.recipe import AnswerRewardSection, TrainRecipe
from unreel.training.rejection.accepted_answers import (
    build_accepted_examples,
    read_accepted_answers,
    select_best_answers,
    write_accepted_answers,
)
from unreel.training.rewards.answer_key import QuestionWithTruths, group_examples_by_question
from unreel.training.rewards.reward import AnswerReward
from unreel.training.rewards.reward_settings import compute_answer_reward_settings
from unreel.training.sft.batches import ExampleCollator
from unreel.training.sft.lru_cache import LruCache

_GALLERY_BYTES = 64 << 20


def build_rejection_sampling_examples(
    recipe: TrainRecipe,
    reward: AnswerRewardSection,
    folder: Path,
    access: ClipAccessSettings,
    examples: TrainingExampleSet,
) -> TrainingExampleSet:
    """Return the examples that the recipe's checkpoint answered well, with those answers as targets.

    Answers are sampled and scored once; a stored result in `folder` with the same inputs is reused.

    Raises:
        InvalidSettingError: The checkpoint is an adapter.
        InvalidValueError: No answer has a sufficient reward.
    """
    base = find_base_model(recipe.model)
    taught = read_checkpoint_input_spec(base.folder)
    if taught is not None and taught.base is not None:
        setting, problem = (
            "model.name",
            "it is an adapter, and the next round begins on a whole model",
        )
        remedy = "Write reward.method = grpo, or name a whole checkpoint"
        raise InvalidSettingError(setting, problem, remedy)
    whose = hash_rejection_sampling_inputs(recipe, base, examples)
    accepted = read_accepted_answers(folder, whose)
    if accepted is None:
        accepted = select_best_answers(
            _sample_rewarded_answers(recipe, reward, access, examples, base),
            keep_from=reward.keep_from,
        )
        write_accepted_answers(accepted, OutputDirectory(folder, published=True), whose)
    return replace(examples, train=build_accepted_examples(examples.train, accepted))


def hash_rejection_sampling_inputs(
    recipe: TrainRecipe, base: BaseModelFolder, examples: TrainingExampleSet
) -> str:
    """Return the hash of the model, the examples, the reward settings and the seed."""
    reward = "" if recipe.reward is None else recipe.reward.model_dump_json()
    return digest("harvest", base.digest, examples.digest, reward, str(recipe.seed))


def _sample_rewarded_answers(
    recipe: TrainRecipe,
    reward: AnswerRewardSection,
    access: ClipAccessSettings,
    examples: TrainingExampleSet,
    base: BaseModelFolder,
) -> list[tuple[QuestionWithTruths, list[tuple[str, AnswerReward]]]]:
    encoder = RequestEncoder.open(base.folder, build_checkpoint_input_spec(recipe, base))
    order = ExampleOrder(examples.train, weights=examples.weights, seed=recipe.seed)
    lessons = ExampleCollator(
        order, encoder=encoder, access=access, gallery=LruCache(_GALLERY_BYTES)
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if recipe.model.precision == "bf16" else torch.float32
    sampler = AnswerSampler(
        load_local_model(base.folder, device=device, dtype=dtype),
        encoder,
        max_tokens=recipe.max_tokens,
        temperature=reward.temperature,
        seed=recipe.seed,
    )
    questions = group_examples_by_question(examples.train)
    terms = compute_answer_reward_settings(reward, [question.truths for question in questions])
    terms = terms.model_copy(
        update={"real_scale": 1.0, "generated_scale": 1.0}
    )  # `select_best_answers` balances the labels
    tried = []
    for question in questions:
        lesson = lessons.lesson(question.example)
        texts = (
            lesson
            if isinstance(lesson, Failure)
            else sampler.draw(lesson.sheet, reward.generations)
        )
        if isinstance(lesson, Failure) or isinstance(texts, Failure):
            continue  # The training that follows reports this failure.
        key = question.key(lesson, terms)
        tried.append((question, [(text, key.mark(text)) for text in texts]))
    return tried
