"""Three reviewers that learn from synthesised clips: two rewards to train on, and one that is held out.

All are fitted baselines of `unreel.reviewers.baselines`. `honest` and `held_out` see motion and colour, and learn from
clips with every fault of the generator, each from its own clips. `hackable` is the `motion` baseline after a biased
collection: its real clips come from handheld cameras and its generated ones do not, so it learns that shake is real.
"""

import io
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from generator import render
from PIL import Image

from unreel.core.clip import Clip, Generated, Origin, Real
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import MediaError
from unreel.core.failure import Failure
from unreel.core.question import Condition
from unreel.media.reader import MediaReader, run_trusted_task
from unreel.reviewers.baselines.fitting import (
    BaselineTrainingClip,
    Features,
    FittedBaselineReviewer,
    cross_fit_baseline,
)
from unreel.reviewers.baselines.motion import compute_motion_features, fit_motion_baseline
from unreel.reviewers.clip_inputs import build_clip_input
from unreel.reviewers.contract import ClipInput, InputKind

CONDITION = Condition(sampling="uniform-8", prompt="confidence")
WANTS = frozenset({InputKind.FRAMES})
N_EACH = 12
"""Clips of each kind in a fit."""
READER = MediaReader(run_trusted_task)

FAULTS: dict[str, dict[int, tuple[float, float]]] = {
    "shaky": {0: (0.15, 1.0)},
    "flickering": {1: (0.15, 1.0)},
    "frozen": {2: (0.0, 0.1)},
    "gaudy": {3: (0.75, 1.0)},
    "grey": {3: (0.0, 0.1)},
}
"""Parameter and range of each fault."""


def draw_steady(rng: np.random.Generator) -> np.ndarray:
    """Return the parameters of a clip without faults: shake, flicker, speed and colour."""
    return rng.uniform([0, 0, 0.3, 0.25], [0.05, 0.05, 0.9, 0.55])


def extract(clip_input: ClipInput) -> Features | Failure:
    """Return motion and colour of the frames, with squares: both too little and too much may be wrong."""
    motion = compute_motion_features(clip_input)
    if isinstance(motion, Failure):
        return motion
    frames = [
        np.asarray(Image.open(io.BytesIO(frame.jpeg)), np.float64) for frame in clip_input.frames
    ]
    tops = [frame.max(axis=2) for frame in frames]
    saturation = float(
        np.mean([((t - f.min(axis=2)) / (t + 1)).mean() for t, f in zip(tops, frames, strict=True)])
    )
    light = np.array([frame.mean() for frame in frames])
    jumps = float(np.abs(np.diff(light, n=2)).mean())
    features = {**motion, "saturation": saturation, "log jumps": float(np.log(jumps + 0.1))}
    squares = {f"{name} squared": features[name] ** 2 for name in ("log first", "saturation")}
    return features | squares


@cache
def fit_reviewer(name: str) -> FittedBaselineReviewer:
    """Return the reviewer `honest`, `held_out` or `hackable`."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "hackable":
            return fit_motion_baseline(_biased_set(Path(folder)))
        seed = {"honest": 1, "held_out": 2}[name]
        clips = _fair_set(Path(folder), seed)
        return cross_fit_baseline(clips, kind=name, wants=WANTS, extract=extract, seed=seed)


def _fair_set(folder: Path, seed: int) -> Iterator[BaselineTrainingClip]:
    rng = np.random.default_rng([seed, 0])
    for number in range(2 * N_EACH):
        yield _training_clip(folder, draw_steady(rng), Real(), scene=10_000 * seed + number)
    for fault, ranges in FAULTS.items():
        for number in range(N_EACH):
            parameters = draw_steady(rng)
            for place, (low, high) in ranges.items():
                parameters[place] = rng.uniform(low, high)
            scene = 10_000 * seed + number
            yield _training_clip(folder, parameters, Generated(fault), scene=scene)


def _biased_set(folder: Path) -> Iterator[BaselineTrainingClip]:
    rng = np.random.default_rng([3, 0])
    for number in range(2 * N_EACH):
        handheld = draw_steady(rng)
        handheld[0] = rng.uniform(0.4, 1.0)
        yield _training_clip(folder, handheld, Real(), scene=30_000 + number)
        steady = draw_steady(rng)
        steady[1] = rng.uniform(0.0, 0.3)
        yield _training_clip(folder, steady, Generated("tripod"), scene=30_000 + number)


def _training_clip(
    folder: Path, parameters: np.ndarray, origin: Origin, *, scene: int
) -> BaselineTrainingClip:
    path = folder / "clip.mp4"
    path.write_bytes(render(parameters, scene=scene, seed=len(getattr(origin, "creator", ""))))
    return BaselineTrainingClip(clip_input=show_clip(path), origin=origin, group=str(scene))


def show_clip(path: Path) -> ClipInput:
    """Return the clip as the reviewers see it."""
    facts = READER.probe(path)
    if isinstance(facts, Failure):
        raise MediaError(facts.reason, facts.detail)
    clip = Clip(id=compute_clip_id(path), location=str(path), facts=facts)
    exhibit = build_clip_input(clip, path, reader=READER, condition=CONDITION, wants=WANTS)
    if isinstance(exhibit, Failure):
        raise MediaError(exhibit.reason, exhibit.detail)
    return exhibit
