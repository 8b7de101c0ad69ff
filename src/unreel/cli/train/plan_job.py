"""Implementation of `unreel train plan`, imported when it runs."""

import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from unreel.cli.output import print_json, print_message, print_table
from unreel.core.errors import InvalidSettingError
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import build_clip_access_settings
from unreel.training.plan.architecture import find_model_architecture
from unreel.training.plan.device_resources import get_accelerator_device
from unreel.training.plan.estimate import (
    WELL_FED,
    TrainingEstimate,
    TrainingHardware,
    estimate_training,
)
from unreel.training.plan.example_strata import (
    build_declared_example_strata,
    has_local_benchmarks,
    read_benchmark_example_strata,
)
from unreel.training.recipe import TrainRecipe, read_train_recipe


def print_training_plan(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the resource estimate of a training, and exit the process."""
    recipe = read_train_recipe(options["recipe"], data=options["data"], changes=options["changes"])
    fleet = _build_training_hardware(options, recipe)
    architecture = find_model_architecture(recipe.model.name, recipe.model.family)
    if has_local_benchmarks(recipe):
        access = build_clip_access_settings(
            read_environment_settings(), trusted=options["trusted"], outside=options["outside"]
        )
        strata, source = (
            read_benchmark_example_strata(recipe, access),
            "as the benchmark holds them",
        )
    else:
        strata, source = build_declared_example_strata(recipe), "as the recipe declares them"
    plan = estimate_training(recipe, strata, architecture, fleet)
    if as_json:
        print_json({"counted": source, "fits": plan.fits, "plan": plan})
    else:
        _print_training_estimate(plan, recipe, source)
    sys.exit(0 if plan.fits else 1)


def _build_training_hardware(options: Mapping[str, Any], recipe: TrainRecipe) -> TrainingHardware:
    return TrainingHardware(
        device=get_accelerator_device(options["gpu"]),
        count=options["gpus"] or recipe.devices.count * recipe.devices.nodes,
        price_usd=_parse_price(options["price"]),
        utilisation=options["utilisation"],
    )


def _parse_price(text: str | None) -> Decimal | None:
    try:
        return None if text is None else Decimal(text)
    except InvalidOperation as error:
        setting, problem = "--price", f"{text!r} is not a price"
        raise InvalidSettingError(setting, problem, "Give dollars, for example 2.50") from error


def _print_training_estimate(plan: TrainingEstimate, recipe: TrainRecipe, source: str) -> None:
    rows = [{"what": what, "estimate": value} for what, value in _iter_estimate_rows(plan, source)]
    print_table(
        ("what", "estimate"), rows, title=f"{plan.recipe} on {plan.devices} x {plan.device}"
    )
    if recipe.published and recipe.published.minutes:
        published = recipe.published
        print_message(
            f"published: {published.minutes:g} minutes on {published.devices or 'devices not named'}"
        )
    print_message("assumptions:", *(f"  {assumption}" for assumption in plan.assumptions))
    if not plan.fits:
        need, has = plan.memory.total, plan.memory_gib
        print_message(f"does not fit: {need:.0f} GiB on a device with {has:.0f}. Remedies:")
        print_message(*(f"  {remedy}" for remedy in plan.remedies))


def _iter_estimate_rows(plan: TrainingEstimate, source: str) -> Iterator[tuple[str, str]]:
    mean, memory = plan.mean, plan.memory
    wide, high = mean.largest.seen
    yield "examples", f"{plan.examples:,}, {source}"
    yield "frames of an example", f"{mean.frames:.1f}; the largest {mean.largest.n_frames}"
    yield "frame as the model sees it", f"{wide} x {high} in the largest"
    yield (
        "tokens of an example",
        (
            f"{mean.vision_tokens:,.0f} for frames, {mean.prompt_tokens:,.0f} for the prompt, "
            f"{mean.answer_tokens:,.0f} for the answer; at most {mean.largest.tokens:,}"
        ),
    )
    yield "parameters", f"{plan.parameters:,}, of which {plan.trained:,} are trained"
    yield (
        "memory of a device",
        (
            f"{memory.total:.0f} of {plan.memory_gib:.0f} GiB: weights {memory.weights:.1f}, gradients "
            f"{memory.gradients:.1f}, optimiser {memory.optimiser:.1f}, activations "
            f"{memory.activations:.1f}, scores {memory.scores:.1f}, around {memory.around:.1f}"
        ),
    )
    yield "devices share", plan.strategy
    yield "steps", f"{plan.steps:,}"
    yield "operations", f"{plan.flops:.2e}"
    yield (
        "hours",
        f"{plan.hours:.2f} (computing {plan.compute_hours:.2f}, decoding in parallel {plan.decode_hours:.2f}, validation {plan.watch_hours:.2f})",
    )
    yield f"hours at {WELL_FED:.0%} of the peak", f"{plan.well_fed_hours:.2f}"
    if plan.cost_usd is not None:
        yield "cost", f"{plan.cost_usd:,} USD"
