"""Collect a model's own answers for training: sample and score answers, and keep the best."""

from dataclasses import replace
from pathlib import Path

import torch

from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.identity import digest
from unreel.core.output_files import OutputDirectory
from unreel.engine.storage_access import StorageAccess
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.reviewers.local.input_format import read_taught
from unreel.reviewers.local.loading import load_model
from unreel.training.answer_sampling import AnswerSampler
from unreel.training.base_model import BaseModelFolder, find_base, read_input_format
from unreel.training.examples.reading import ExampleSet
from unreel.training.grpo.prompt_items import RewardedQuestion, group_by_question
from unreel.training.recipe import RewardSection, TrainRecipe
from unreel.training.rejection.run import (
    build_examples,
    read_harvest,
    select_best_answers,
    write_harvest,
)
from unreel.training.rewards.reward import AnswerReward
from unreel.training.rewards.terms import compute_reward_terms
from unreel.training.sft.batches import ExampleCollator
from unreel.training.sft.example_order import ExampleOrder
from unreel.training.sft.lru_cache import LruCache

_GALLERY_BYTES = 64 << 20


def gather(
    recipe: TrainRecipe,
    reward: RewardSection,
    folder: Path,
    access: StorageAccess,
    examples: ExampleSet,
) -> ExampleSet:
    """Return the examples that the recipe's checkpoint answered well, with those answers as targets.

    Earlier results in `folder` of the same model for the same questions are reused.

    Raises:
        InvalidSettingError: The checkpoint is an adapter.
        InvalidValueError: No answer has a sufficient reward.
    """
    base = find_base(recipe.model)
    taught = read_taught(base.folder)
    if taught is not None and taught.base is not None:
        setting, problem = (
            "model.name",
            "it is an adapter, and the next round begins on a whole model",
        )
        remedy = "Write reward.method = grpo, or name a whole checkpoint"
        raise InvalidSettingError(setting, problem, remedy)
    whose = hash_collection(recipe, base, examples)
    kept = read_harvest(folder, whose)
    if kept is None:
        kept = select_best_answers(
            _sample_rewarded_answers(recipe, reward, access, examples, base),
            keep_from=reward.keep_from,
        )
        write_harvest(kept, OutputDirectory(folder, published=True), whose)
    return replace(examples, train=build_examples(examples.train, kept))


def hash_collection(recipe: TrainRecipe, base: BaseModelFolder, examples: ExampleSet) -> str:
    """Return the identity of a collection: the model, the questions, and their sampling and reward settings."""
    reward = "" if recipe.reward is None else recipe.reward.model_dump_json()
    return digest("harvest", base.digest, examples.digest, reward, str(recipe.seed))


def _sample_rewarded_answers(
    recipe: TrainRecipe,
    reward: RewardSection,
    access: StorageAccess,
    examples: ExampleSet,
    base: BaseModelFolder,
) -> list[tuple[RewardedQuestion, list[tuple[str, AnswerReward]]]]:
    encoder = RequestEncoder.open(base.folder, read_input_format(recipe, base))
    order = ExampleOrder(examples.train, weights=examples.weights, seed=recipe.seed)
    lessons = ExampleCollator(
        order, encoder=encoder, access=access, gallery=LruCache(_GALLERY_BYTES)
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if recipe.model.precision == "bf16" else torch.float32
    sampler = AnswerSampler(
        load_model(base.folder, device=device, dtype=dtype),
        encoder,
        max_tokens=recipe.max_tokens,
        temperature=reward.temperature,
        seed=recipe.seed,
    )
    asked = group_by_question(examples.train)
    terms = compute_reward_terms(reward, [each.truths for each in asked])
    terms = terms.model_copy(
        update={"real_scale": 1.0, "generated_scale": 1.0}
    )  # `select_best_answers` balances
    tried = []
    for each in asked:
        lesson = lessons.lesson(each.example)
        texts = (
            lesson
            if isinstance(lesson, Failure)
            else sampler.draw(lesson.sheet, reward.generations)
        )
        if isinstance(lesson, Failure) or isinstance(texts, Failure):
            continue  # The training that follows meets it too, and tells of it.
        key = each.key(lesson, terms)
        tried.append((each, [(text, key.mark(text)) for text in texts]))
    return tried
