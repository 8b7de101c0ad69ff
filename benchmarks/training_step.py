"""Seconds a step: our trainer with decoding on the way, against a bare SFTTrainer over tensors decoded ahead.

    OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 python benchmarks/training_step.py [--steps 40] [--workers 1]

Both learn from the same examples in the same order with the same tiny Qwen2.5-VL (hidden 128, 4 layers).
Three figures: the bare loop; ours with frames decoded anew in every step; ours warm, with frames from the
gallery. The first steps of each are left out. Decoding overlaps where the cold figure lies below bare plus
what decoding and encoding a batch takes.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
warnings.simplefilter("ignore")

import torch
from datasets import Dataset
from transformers import AutoProcessor, PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from training import lab
from unreel.core.settings import EnvironmentSettings
from unreel.engine.storage_access import build_clip_access_settings
from unreel.reviewers.local.encoder import RequestEncoder
from unreel.training import run as training
from unreel.training.examples.example import ExampleOrder
from unreel.training.examples.reading import read_training_examples
from unreel.training.model import build_checkpoint_input_spec, find_base_model, load_trainable_model
from unreel.training.sft.batches import PLACE, UNUSABLE, ExampleCollator, LruCache

BATCH, SKIPPED = 4, 6


class Clock(TrainerCallback):
    """When each step ended."""

    def __init__(self):
        self.at = []

    def on_step_end(self, *_, **__):
        self.at.append(time.perf_counter())


def per_step(at):
    gaps = [b - a for a, b in zip(at[SKIPPED:], at[SKIPPED + 1 :], strict=False)]
    return statistics.median(gaps)


def bare(recipe, folder, lessons, base, steps):
    batches = []
    for i in range(steps):
        batch = lessons([{PLACE: place} for place in range(i * BATCH, (i + 1) * BATCH)])
        batch.pop(UNUSABLE)
        batches.append(batch)
    clock = Clock()
    config = SFTConfig(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=BATCH,
        learning_rate=recipe.optimise.learning_rate,
        lr_scheduler_type="cosine",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        train_sampling_strategy="sequential",
        dataset_kwargs={"skip_prepare_dataset": True},
        remove_unused_columns=False,
        max_length=None,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    model = load_trainable_model(recipe.model, base.folder, adapter=None, seed=recipe.seed)
    sft = SFTTrainer(
        model=model,
        args=config,
        train_dataset=Dataset.from_dict({PLACE: range(steps * BATCH)}),
        data_collator=lambda rows: dict(batches[rows[0][PLACE] // BATCH]),
        processing_class=AutoProcessor.from_pretrained(base.folder),
        callbacks=[clock],
    )
    sft.remove_callback(PrinterCallback)
    sft.train()
    return per_step(clock.at)


def ours(recipe, folder, access):
    at = []
    told = training.TrainingCallbacks(on_step=lambda *_: at.append(time.perf_counter()))
    training.train(recipe, folder, access=access, callbacks=told)
    return per_step(at)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        measure(Path(place), asked)


def measure(place, asked):
    root = lab.write_lab(place / "lab", n_clips=24)
    optimise = {"max_steps": asked.steps, "batch_size": BATCH, "workers": asked.workers}
    watch = {"every": 10**6, "save_every": 10**6, "clips": 1}
    recipe = lab.recipe(root, optimise=optimise, watch=watch)
    access = build_clip_access_settings(EnvironmentSettings(), trusted=False)
    examples = read_training_examples(recipe, access=access, folder=place / "data")
    base = find_base_model(recipe.model)
    encoder = RequestEncoder(base.folder, build_checkpoint_input_spec(recipe, base))
    order = ExampleOrder(examples.train, weights=examples.weights, seed=recipe.seed)
    lessons = ExampleCollator(order, encoder=encoder, access=access, gallery=LruCache(1 << 30))
    began = time.perf_counter()
    lessons([{PLACE: i} for i in range(BATCH)])
    cold_batch = time.perf_counter() - began
    began = time.perf_counter()
    lessons([{PLACE: i} for i in range(BATCH)])
    warm_batch = time.perf_counter() - began
    figures = {"bare": bare(recipe, place / "bare", lessons, base, asked.steps)}
    figures["warm"] = ours(recipe, place / "warm", access)
    training.GALLERY_BYTES = 0
    figures["cold"] = ours(recipe, place / "cold", access)
    clip = examples.train[0].clips[0].facts.video
    print(f"{BATCH} clips of {clip.width}x{clip.height}, 4 frames each, {asked.workers} workers")
    print(f"a batch made alone: {cold_batch:.3f} s decoded, {warm_batch:.3f} s from the gallery")
    for name, seconds in figures.items():
        print(f"{name}: {seconds:.4f} s a step, {seconds / figures['bare']:.2f} of bare")


if __name__ == "__main__":
    main()
