"""A stage for the tests of this folder: two balls cross a wall, before a still or a moving camera."""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from scipy import ndimage

from unreel.core.trace import Category
from unreel.curation.inject.clip_injection import InjectedFrames, inject_trace_into_frames
from unreel.media.decode import Rgb

N_FRAMES = 48
WIDTH, HEIGHT = 240, 160
INSTANTS_US = [round(index * 1_000_000 / 24) for index in range(N_FRAMES)]

Put = Callable[..., InjectedFrames]


@cache
def stage(*, pan: int = 0, seed: int = 0) -> tuple[Rgb, ...]:
    """`pan` is by how many columns the camera moves from frame to frame."""
    rng = np.random.default_rng(seed)
    wide = WIDTH + pan * N_FRAMES
    wall = 110 + 420 * ndimage.gaussian_filter(rng.normal(size=(HEIGHT, wide)), 5)
    down, across = np.mgrid[0:HEIGHT, 0:WIDTH]
    frames = []
    for index in range(N_FRAMES):
        view = wall[:, pan * index : pan * index + WIDTH]
        frame = np.stack([view, view * 0.95, view * 0.8], axis=-1)
        x, y = 55 + 1.7 * index, 66 + 10 * np.sin(index / 7)
        for middle, colour in (((x, y), (40, 70, 210)), ((x + 14, y + 46), (220, 60, 30))):
            far = np.hypot(across - middle[0], down - middle[1]) / 17
            lit = np.clip(1.2 - 0.6 * far, 0, 1)[..., None] * np.array(colour)
            inside = np.clip((1 - far) * 8, 0, 1)[..., None]
            frame = frame * (1 - inside) + lit * inside
        frames.append(np.clip(np.rint(frame), 0, 255).astype(np.uint8))
    return tuple(frames)


@pytest.fixture(scope="session")
def frames() -> Sequence[Rgb]:
    return stage()


@pytest.fixture(scope="session")
def panned() -> Sequence[Rgb]:
    return stage(pan=2)


@pytest.fixture(scope="session")
def instants_us() -> list[int]:
    return INSTANTS_US


@pytest.fixture(scope="session")
def put() -> Put:
    """The trace of a category and a seed on the stage; nobody may change what it gives."""

    @cache
    def put(
        category: Category, seed: int, *, strength: float = 0.7, pan: int = 0
    ) -> InjectedFrames:
        done = inject_trace_into_frames(
            stage(pan=pan), instants_us=INSTANTS_US, category=category, seed=seed, strength=strength
        )
        assert isinstance(done, InjectedFrames), str(done)
        return done

    return put
