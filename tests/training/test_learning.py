"""A tiny model learns from injected traces on drawn clips, and finds such traces in scenes of another kind.

All of it goes the way of the product: a benchmark folder, a recipe, `train`, `local/PATH` asked by `evaluate`, and the
paired differences of `compare`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("lance")

import unreel
from training.drawn import HEIGHT, WIDTH, write_drawn
from training.learner import PROMPT, write_learner
from unreel.core.box import Box
from unreel.core.comparison import Difference
from unreel.core.estimate import Estimate
from unreel.core.settings import EnvironmentSettings
from unreel.core.trace import Trace
from unreel.engine.storage_access import build_clip_access_settings
from unreel.training.recipe import TrainRecipe, validate_train_recipe

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow, pytest.mark.timeout(7200)]

N_TAUGHT, N_OTHER = 900, 100
"""Scenes; of each there is a clip as it is and one with a trace."""
N_STEPS = 450
SAMPLING = "uniform-10"


@dataclass(frozen=True, slots=True)
class Learned:
    """What came of the one training of this file."""

    run: unreel.Run
    against_constant: dict[str, Difference]
    """The model less whoever gives the one answer that is best for all held-out clips."""


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Learned:
    return learn(tmp_path_factory.mktemp("learning"))


def learn(root: Path, *, n_steps: int = N_STEPS) -> Learned:
    """Draw, train, ask and compare below `root`."""
    from unreel.training.run import train

    write_drawn(root / "taught", kind="taught", seeds=range(N_TAUGHT))
    other = write_drawn(root / "other", kind="other", seeds=range(N_OTHER))
    write_learner(root / "base")
    access = build_clip_access_settings(EnvironmentSettings(), trusted=True)
    trained = train(recipe(root, n_steps=n_steps), root / "trained", access=access)
    model = unreel.evaluate(
        other, model=f"local/{trained.model}", protocol="trace", out=root / "model", trusted=True
    )
    constant = unreel.evaluate(
        other,
        model="recorded",
        recorded=write_constant(other, root / "constant.jsonl"),
        protocol="trace",
        box_space="pixel",
        out=root / "constant",
        trusted=True,
    )
    (comparison,) = unreel.compare(
        model, constant, metrics=["accuracy", "box-iou", "time-distance"]
    )
    return Learned(model, {found.metric: found for found in comparison.differences})


def recipe(root: Path, *, n_steps: int) -> TrainRecipe:
    """All weights of the tiny model, in float32, on clips as one video."""
    return validate_train_recipe(
        {
            "name": "drawn",
            "input": "video",
            "max_tokens": 40,
            "model": {
                "name": str(root / "base"),
                "family": "qwen3-vl",
                "tune": "full",
                "vision": "trained",
                "precision": "fp32",
                "gradient_checkpointing": False,
            },
            "data": {
                "benchmark": str(root / "taught"),
                "split": None,
                "protocol": "trace",
                "condition": {"sampling": SAMPLING, "prompt": PROMPT},
            },
            "holdout": {"share": 0.05, "near_duplicates": False},
            "optimise": {
                "max_steps": n_steps,
                "batch_size": 24,
                "learning_rate": 2e-3,
                "warmup": 0.05,
                "betas": (0.9, 0.99),
                "workers": 0,
            },
            "watch": {"every": 50, "save_every": 1000, "clips": 48},
        }
    )


def write_constant(benchmark: Path, file: Path) -> Path:
    """The answer `FAKE` with the box and the start that fit all traces of `benchmark` best."""
    rows = list(unreel.open_benchmark(benchmark))
    traces = [trace for row in rows for trace in row.traces]
    box, start_s = best_box([trace.track[0].box for trace in traces]), best_start_s(traces)
    text = f"FAKE <coordinates>{_pixels(box)}</coordinates><start_time>{start_s}</start_time>"
    lines = [json.dumps({"video": row.name, "text": text}) for row in rows]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _pixels(box: Box) -> list[float]:
    return [box.x0 * WIDTH, box.y0 * HEIGHT, box.x1 * WIDTH, box.y1 * HEIGHT]


def best_box(boxes: Sequence[Box]) -> Box:
    """Of all boxes on a grid of sixteenths, the one that overlaps `boxes` most."""
    ends = [(low / 16, high / 16) for low in range(16) for high in range(low + 1, 17)]
    grid = (Box(x0, y0, x1, y1) for (x0, x1), (y0, y1) in product(ends, ends))
    return max(grid, key=lambda box: sum(box.iou(each) for each in boxes))


def best_start_s(traces: Sequence[Trace]) -> float:
    """The median: no constant has less absolute error."""
    starts = sorted(trace.span.start_us for trace in traces)
    return starts[len(starts) // 2] / 1_000_000


def interval(measured: Any) -> Estimate:
    assert isinstance(measured, Estimate), measured
    return measured


def test_its_labels_are_right_for_more_than_four_of_five_clips_of_other_scenes(
    learned: Learned,
) -> None:
    assert interval(learned.run.score()["accuracy"]).low > 80
    assert interval(learned.against_constant["accuracy"].difference).low > 0


def test_its_boxes_overlap_more_than_the_best_constant_box(learned: Learned) -> None:
    assert interval(learned.against_constant["box-iou"].difference).low > 0


def test_its_starts_are_closer_than_the_best_constant_start(learned: Learned) -> None:
    assert interval(learned.against_constant["time-distance"].difference).high < 0
