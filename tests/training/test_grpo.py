"""GRPO by TRL: the prompts are those of the encoder, the rewards ours, and a tiny model earns more after it."""

import io
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl.import_utils")

from PIL import Image

from local.sheets import ask, shown
from tiny_models import write_tiny
from training.marking import draw_truths, key, settled
from unreel.core.clip import Generated, Real
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Estimate
from unreel.core.question import Condition
from unreel.reviewers.contract import ReviewRequest, ShownFrame
from unreel.reviewers.local.checkpoint import CheckpointInputSpec, FamilyName
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.reviewers.local.loading import load_local_model
from unreel.stats.bootstrap import bootstrap_mean
from unreel.testing.reviewers import sample_clip_input
from unreel.training.model import AnswerSampler
from unreel.training.recipe import TrainRecipe, validate_train_recipe
from unreel.training.rewards.reward import AnswerKey, PromptWithAnswerKey
from unreel.training.rewards.reward_settings import compute_answer_reward_settings

trl.is_vllm_available = lambda *_, **__: False  # loading it takes half a minute
from unreel.training.grpo import GrpoTrainer, build_grpo_config, compute_grpo_rewards

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(1800)]
TERMS = settled([])


def taught(family: FamilyName) -> CheckpointInputSpec:
    return CheckpointInputSpec(family=family, input="frames", box_space="model-input")


def recipe(family: FamilyName = "qwen2.5-vl", *, tune: str = "full", **changes: Any) -> TrainRecipe:
    values: dict[str, Any] = {
        "name": "tiny",
        "max_tokens": 8,
        "model": {
            "name": "tiny",
            "family": family,
            "tune": tune,
            "precision": "fp32",
            "gradient_checkpointing": False,
            "vision": "trained",
        },
        "data": {"benchmark": "x", "protocol": "reality", "condition": {"prompt": "direct"}},
        "optimise": {"batch_size": 16, "learning_rate": 2e-4, "schedule": "constant"},
        "reward": {"generations": 4},
    }
    return validate_train_recipe(values | changes)


def traced(instants: list[Fraction | int], seed: int = 0) -> PromptWithAnswerKey:
    truths = draw_truths(2, seed=seed)
    return PromptWithAnswerKey(
        request=ask([shown(instants, seed=seed)]), key=key(truths[1], settings=TERMS)
    )


def improver(
    folder: Path,
    prompts: list[PromptWithAnswerKey],
    asked: TrainRecipe,
    *,
    n_steps: int = 1,
    model: Any = None,
) -> GrpoTrainer:
    assert asked.reward
    encoder = RequestEncoder(folder, taught(asked.model.family))
    model = model or load_local_model(folder, device="cpu", dtype=torch.float32)
    config = build_grpo_config(asked, asked.reward, folder / "out", n_steps=n_steps)
    return GrpoTrainer(model, encoder, prompts, config=config)


@pytest.mark.parametrize("family", ["qwen2.5-vl", "qwen3-vl"])
def test_the_prompts_are_those_that_the_model_is_asked_with(
    family: FamilyName, tmp_path: Path
) -> None:
    write_tiny(family, tmp_path)
    encoder = RequestEncoder(tmp_path, taught(family))
    pair = ask([shown([0], seed=1), shown([0, 1], seed=2)], instrument="preference", prompt="paper")
    puts = [
        traced([0, Fraction(1, 3), Fraction(9, 2)]),
        traced([0], seed=1),
        PromptWithAnswerKey(request=pair, key=key(*draw_truths(1), settings=TERMS)),
    ]
    trainer = improver(tmp_path, puts, recipe(family))
    talks = [encoder.converse(put.request) for put in puts]
    ids, pictures, media = trainer._tokenize_prompts(talks)
    ours = [encoder.encode(put.request) for put in puts]
    assert [list(each) for each in ids] == [each.input_ids.tolist() for each in ours]
    assert [len(each) for each in pictures] == [3, 1, 3]
    together = encoder.collate(ours, pad="left")
    assert torch.equal(media["pixel_values"], together["pixel_values"])
    assert torch.equal(media["image_grid_thw"], together["image_grid_thw"])
    assert "4.5" in encoder.decode(ids[0])


def test_a_model_whose_prompts_trl_would_change_is_refused(tmp_path: Path) -> None:
    write_tiny("qwen2.5-vl", tmp_path)
    put = traced([0, 1])

    class Other(GrpoTrainer):
        def _tokenize_prompts(self, prompts: list[Any]) -> Any:
            ids, *rest = super()._tokenize_prompts(prompts)
            return [list(each)[1:] for each in ids], *rest

    model = load_local_model(tmp_path, device="cpu", dtype=torch.float32)
    asked = recipe()
    assert asked.reward
    with pytest.raises(InvalidSettingError, match="another prompt"):
        Other(
            model,
            RequestEncoder(tmp_path, taught("qwen2.5-vl")),
            [put],
            config=build_grpo_config(asked, asked.reward, tmp_path / "out", n_steps=1),
        )


def test_rewards_reach_trl_with_their_parts() -> None:
    told: dict[str, float] = {}
    truth = draw_truths(2)[1]
    said = [[{"role": "assistant", "content": text}] for text in ("FAKE.", "REAL.", "")]
    marked = key(truth, settings=TERMS)
    rewards = compute_grpo_rewards(
        said, key=[marked] * 3, log_metric=told.__setitem__, trainer_state=None
    )
    assert rewards == [marked.mark(text).total for text in ("FAKE.", "REAL.", "")]
    assert told["paid/label"] == 0.5


def coloured(number: int, *, seed: int) -> PromptWithAnswerKey:
    """A clip that is bluer than red when it is real, and redder when it is generated; some by little."""
    rng = np.random.default_rng((seed, number))
    is_real = number % 2 == 0
    base, more = rng.integers(80, 150), abs(rng.normal(18, 14)) * (1 if is_real else -1)
    frames = tuple(
        ShownFrame(
            index=k,
            at_s=Fraction(k, 2),
            width=56,
            height=56,
            jpeg=_jpeg(np.array([base - more, 120, base + more]), rng),
        )
        for k in range(2)
    )
    exhibit = replace(sample_clip_input(f"{seed}-{number}"), frames=frames)
    sheet = ask(
        [exhibit], instrument="reality", prompt="direct", condition=Condition(prompt="direct")
    )
    truth = Real() if is_real else Generated("x")
    terms = compute_answer_reward_settings(recipe().reward, [])  # type: ignore[arg-type]
    marked = AnswerKey(
        protocol="reality", prompt="direct", space=None, truths=(truth,), terms=terms
    )
    return PromptWithAnswerKey(request=replace(sheet, key=f"{seed}-{number}"), key=marked)


def _jpeg(colour: Any, rng: Any) -> bytes:
    pixels = np.clip(colour + rng.normal(0, 25, (56, 56, 3)), 0, 255).astype("uint8")
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=90)
    return out.getvalue()


def teach(
    model: Any, encoder: RequestEncoder, prompts: list[PromptWithAnswerKey], *, n_steps: int
) -> None:
    """A supervised training that ends before the model has learned all that it could."""
    told = {Real: "<answer>1</answer>", Generated: "<answer>0</answer>"}
    lessons: list[Any] = [
        encoder.encode(put.request, told[type(put.key.truths[0])]) for put in prompts
    ]
    rng, optimiser = random.Random(0), torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for _ in range(n_steps):
        loss = model(**encoder.collate(rng.sample(lessons, 16), pad="right")).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()


def earns(model: Any, encoder: RequestEncoder, prompts: list[PromptWithAnswerKey]) -> list[float]:
    """What answers earn that are drawn as GRPO draws them: it is their reward that it raises."""
    torch.manual_seed(0)
    encoded: list[Any] = [encoder.encode(put.request) for put in prompts]
    model.eval()
    rewards: list[float] = []
    for start in range(0, len(prompts), 40):
        batch = encoder.collate(encoded[start : start + 40], pad="left")
        with torch.inference_mode():
            made = model.generate(**batch, max_new_tokens=8, do_sample=True, top_k=0)
        texts = [encoder.decode(row) for row in made[:, batch["input_ids"].shape[1] :]]
        for put, text in zip(prompts[start : start + 40], texts, strict=True):
            rewards.append(put.key.mark(text).total)
    return rewards


@pytest.fixture(scope="module")
def half_taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model whose likeliest answers are mostly right, and whose drawn ones mostly are not."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny("qwen2.5-vl", folder)
    encoder = RequestEncoder(folder, taught("qwen2.5-vl"))
    model = load_local_model(folder, device="cpu", dtype=torch.float32)
    teach(model, encoder, [coloured(i, seed=1) for i in range(200)], n_steps=45)
    model.save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_a_tiny_model_earns_more_on_held_out_clips_after_it(half_taught: Path) -> None:
    encoder = RequestEncoder(half_taught, taught("qwen2.5-vl"))
    held_out = [coloured(i, seed=2) for i in range(160)]
    model = load_local_model(half_taught, device="cpu", dtype=torch.float32)
    before = earns(model, encoder, held_out)
    trainer = improver(
        half_taught, [coloured(i, seed=3) for i in range(200)], recipe(), n_steps=20, model=model
    )
    trainer.train()
    after = earns(model, encoder, held_out)
    gain = bootstrap_mean(np.subtract(after, before), seed=0)
    assert isinstance(gain, Estimate)
    assert gain.low > 0, f"{np.mean(before):.3f} -> {np.mean(after):.3f}: {gain}"


def test_drawn_answers_depend_on_the_seed_and_the_question_alone(half_taught: Path) -> None:
    encoder = RequestEncoder(half_taught, taught("qwen2.5-vl"))
    model = load_local_model(half_taught, device="cpu", dtype=torch.float32)
    first, second = coloured(0, seed=2).request, coloured(1, seed=2).request

    def draw(seed: int, *sheets: ReviewRequest) -> list[Any]:
        sampler = AnswerSampler(model, encoder, max_tokens=8, temperature=1.0, seed=seed)
        return [sampler.draw(sheet, 4) for sheet in sheets]

    assert draw(5, first, second)[1] == draw(5, second)[0]
    assert draw(5, first) != draw(6, first)
    assert len(set(draw(5, first)[0])) > 1
