"""A tiny checkpoint that learned its clips by heart, and an adapter that answers them in other words.

Random weights agree everywhere: what differs between two ways of running a model shows in a trained one.
"""

import math
import random
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch

from local.sheets import ask, shown
from unreel.reviewers.contract import ReviewRequest
from unreel.reviewers.local.checkpoint import (
    CheckpointInputSpec,
    FamilyName,
    Form,
    compute_weights_digest,
    write_checkpoint_input_spec,
)
from unreel.reviewers.local.encoder import EncodedRequest, RequestEncoder
from unreel.reviewers.local.loading import load_local_model

N_CLIPS = 20
FORMS: tuple[Form, ...] = ("frames", "video")
FIRST = "FAKE [{}, {}] {}.5"
OTHER = "REAL [{}, {}] {}.5 s"
_BATCH = 10


def taught(family: FamilyName, form: Form, **more: Any) -> CheckpointInputSpec:
    return CheckpointInputSpec(family=family, input=form, box_space="permille", **more)


def sheets() -> list[ReviewRequest]:
    """Clips whose frames lie a second or two apart, so that the length of a video counts."""
    return [
        ask([shown([Fraction(i * (2 + n % 3), 2) for i in range(6)], size=(56, 56), seed=37 * n)])
        for n in range(N_CLIPS)
    ]


def answers(form: str) -> list[str]:
    """What is learned of each clip: three numbers that nothing but the clip tells."""
    drawn = random.Random(1)
    return [form.format(drawn.randrange(100), drawn.randrange(100), n % 10) for n in range(N_CLIPS)]


def teach(
    model: Any,
    lessons: Sequence[EncodedRequest],
    encoder: RequestEncoder,
    *,
    steps: int,
    rate: float,
) -> float:
    """Train all that can be trained; the last loss."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
    model.train()
    loss = math.inf
    for step, batch in enumerate(_batches(lessons, steps)):
        share = min(1.0, (step + 1) / 20) * 0.5 * (1 + math.cos(math.pi * step / steps))
        for group in optimiser.param_groups:
            group["lr"] = rate * share
        out = model(**encoder.collate(batch, pad="right"))
        optimiser.zero_grad()
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        loss = float(out.loss.detach())
    return loss


def write_base(tiny: Path, folder: Path, family: FamilyName, *, steps: int) -> float:
    """A checkpoint that answers all clips in both forms; it declares the first."""
    model = load_local_model(tiny, device="cpu", dtype=torch.float32)
    encoder = RequestEncoder(tiny, taught(family, "frames"))
    loss = teach(model, _lessons(tiny, family, answers(FIRST)), encoder, steps=steps, rate=2e-3)
    model.save_pretrained(folder)
    encoder.save(folder)
    write_checkpoint_input_spec(encoder.taught, folder)
    return loss


def write_adapter(base: Path, folder: Path, family: FamilyName, *, steps: int) -> float:
    """An adapter on `base` that answers in other words; it declares the second form."""
    from peft import LoraConfig, get_peft_model

    plain = load_local_model(base, device="cpu", dtype=torch.float32)
    layers = r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"
    torch.manual_seed(0)
    model = get_peft_model(plain, LoraConfig(r=16, lora_alpha=32, target_modules=layers))
    told = taught(family, "video", base=str(base), base_digest=compute_weights_digest(base))
    encoder = RequestEncoder(base, told)
    loss = teach(model, _lessons(base, family, answers(OTHER)), encoder, steps=steps, rate=2e-3)
    model.save_pretrained(folder)
    encoder.save(folder)
    write_checkpoint_input_spec(told, folder)
    return loss


def _lessons(folder: Path, family: FamilyName, targets: Sequence[str]) -> list[EncodedRequest]:
    lessons = []
    for form in FORMS:
        encoder = RequestEncoder(folder, taught(family, form))
        for sheet, target in zip(sheets(), targets, strict=True):
            encoded = encoder.encode(sheet, target)
            assert isinstance(encoded, EncodedRequest), encoded
            lessons.append(encoded)
    return lessons


def _batches(lessons: Sequence[EncodedRequest], steps: int) -> Iterable[list[EncodedRequest]]:
    drawn, waiting = random.Random(0), list[EncodedRequest]()
    for _ in range(steps):
        if len(waiting) < _BATCH:
            waiting += drawn.sample(lessons, len(lessons))
        yield [waiting.pop() for _ in range(_BATCH)]
