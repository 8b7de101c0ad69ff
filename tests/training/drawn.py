"""Drawn clips with injected traces: a bright shape crosses a dark ground, and in its twin a second one appears.

Two kinds of scene share no ground and no shape: a model learns on the one and is asked about the other.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from footage import write_clip
from training.sets import fake, real, write_set
from unreel.benchmarks.entry import Entry
from unreel.core.clip import Generated
from unreel.core.trace import Category
from unreel.curation.inject.clip_injection import InjectedFrames, inject_trace_into_frames
from unreel.media.decode import Rgb

Kind = Literal["taught", "other"]
Floats = NDArray[np.float32]
Shape = Callable[[Floats, Floats, float, float], Floats]
"""From columns and rows about its middle, its size and its turn to how far inside of it a pixel lies."""

WIDTH, HEIGHT = 128, 64
N_FRAMES, RATE = 20, 10
CATEGORY = Category.REDUNDANT_OBJECT
_ROWS, _COLUMNS = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
_INSTANTS_US = [round(index * 1_000_000 / RATE) for index in range(N_FRAMES)]


def write_drawn(folder: Path, *, kind: Kind, seeds: Sequence[int]) -> Path:
    """A benchmark folder: for each seed a scene as it is and, of the same group, with its trace."""
    return write_set(folder, (each for seed in seeds for each in _twins(kind, seed)))


def _twins(kind: Kind, seed: int) -> Iterator[tuple[Entry, bytes]]:
    frames = draw(kind, seed)
    injected = inject_trace_into_frames(
        frames, instants_us=_INSTANTS_US, category=CATEGORY, seed=seed, strength=1.0
    )
    if not isinstance(injected, InjectedFrames):
        return
    name = f"{kind}-{seed:05d}"
    changed = [injected.frames.get(index, frame) for index, frame in enumerate(frames)]
    yield real(name, group=name), write_clip(frames, rate=RATE, crf=12)
    twin = fake(f"{name}-injected", group=name, traces=(injected.trace,))
    made = Generated("injected", CATEGORY.value)
    yield replace(twin, origin=made), write_clip(changed, rate=RATE, crf=12)


def draw(kind: Kind, seed: int) -> list[Rgb]:
    """The frames of a scene; a seed gives another one in each kind."""
    rng = np.random.default_rng([seed, len(kind)])
    grounds, shapes = _KINDS[kind]
    tint = rng.normal(size=3)
    grain = grounds[rng.integers(len(grounds))](rng)[..., None] * tint / np.linalg.norm(tint)
    ground = np.clip(rng.uniform(20, 50, 3) + grain * rng.uniform(5, 10), 0, 255)
    mover = _Mover.drawn(rng, shapes[rng.integers(len(shapes))])
    return [mover.paint(ground, index) for index in range(N_FRAMES)]


@dataclass(frozen=True, slots=True)
class _Mover:
    shape: Shape
    radius: float
    colour: Floats
    path: Floats
    """Column and row of its middle in the first and in the last frame."""
    turn: float
    spin: float

    @classmethod
    def drawn(cls, rng: np.random.Generator, shape: Shape) -> "_Mover":
        radius = rng.uniform(13, 16)
        far = rng.uniform(0.8, 1) * (WIDTH - 2 * radius - 4)
        start = rng.uniform(radius + 2, WIDTH - radius - 2 - far)
        rows = rng.uniform(radius + 2, HEIGHT - radius - 2, 2)
        path = np.array([[start, rows[0]], [start + far, rows[1]]])
        path = path if rng.random() < 0.5 else path[::-1]
        colour, turn = rng.uniform(190, 255, 3), rng.uniform(0, 2 * np.pi)
        return cls(shape, radius, colour, path, turn, 0.03 * rng.normal())

    def paint(self, ground: Floats, index: int) -> Rgb:
        part = index / (N_FRAMES - 1)
        column, row = self.path[0] * (1 - part) + self.path[1] * part
        inside = self.shape(
            _COLUMNS - column, _ROWS - row, self.radius, self.turn + self.spin * index
        )
        cover = np.clip(inside + 0.5, 0, 1)[..., None]
        return np.rint(ground * (1 - cover) + self.colour * cover).astype(np.uint8)


def _blotches(rng: np.random.Generator) -> Floats:
    soft = ndimage.gaussian_filter(rng.normal(size=(HEIGHT, WIDTH)), rng.uniform(2, 5))
    return soft / soft.std()


def _stripes(rng: np.random.Generator) -> Floats:
    turn, pace = rng.uniform(0, np.pi), rng.uniform(0.25, 0.7)
    return 1.3 * np.sin(pace * (_COLUMNS * np.cos(turn) + _ROWS * np.sin(turn)) + rng.uniform(0, 6))


def _checks(rng: np.random.Generator) -> Floats:
    turn, side = rng.uniform(0, np.pi / 2), rng.uniform(7, 14)
    across = np.floor((_COLUMNS * np.cos(turn) + _ROWS * np.sin(turn)) / side)
    down = np.floor((_ROWS * np.cos(turn) - _COLUMNS * np.sin(turn)) / side)
    return 1 - 2 * ((across + down) % 2)


def _rings(rng: np.random.Generator) -> Floats:
    far = np.hypot(_COLUMNS - rng.uniform(0, WIDTH), _ROWS - rng.uniform(0, HEIGHT))
    return 1.3 * np.sin(far * rng.uniform(0.3, 0.7))


def _disc(across: Floats, down: Floats, size: float, _turn: float) -> Floats:
    return size - np.hypot(across, down)


def _ellipse(across: Floats, down: Floats, size: float, turn: float) -> Floats:
    long = across * np.cos(turn) + down * np.sin(turn)
    return size - np.hypot(long, 1.25 * (down * np.cos(turn) - across * np.sin(turn)))


def _polygon(
    across: Floats, down: Floats, size: float, turn: float, *, sides: int, inner: float
) -> Floats:
    turns = turn + 2 * np.pi * np.arange(sides) / sides
    walls = [across * np.cos(angle) + down * np.sin(angle) for angle in turns]
    return inner * size - np.max(walls, axis=0)


_KINDS: dict[Kind, tuple[Sequence[Callable[[np.random.Generator], Floats]], Sequence[Shape]]] = {
    "taught": ((_blotches, _stripes), (_disc, partial(_polygon, sides=4, inner=0.85))),
    "other": (
        (_checks, _rings),
        (partial(_polygon, sides=3, inner=0.72), partial(_polygon, sides=6, inner=0.95), _ellipse),
    ),
}
