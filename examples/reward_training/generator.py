"""A generator of clips with four parameters, and a Gaussian policy over them.

A clip shows a textured scene under a moving camera. The parameters, each from 0 to 1:

- `shake`: the camera jumps from frame to frame. 0 is a tripod.
- `flicker`: the brightness jumps from frame to frame.
- `speed`: the camera moves. 0 is a frozen picture.
- `colour`: saturation. 0 is grey, 1 is gaudy.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from PIL import Image

from unreel.media.encode import ClipWriter, VideoTrackSettings

PARAMETERS = ("shake", "flicker", "speed", "colour")
WIDTH, HEIGHT, MARGIN = 96, 64, 28
N_FRAMES, RATE = 12, Fraction(8)
SIGMA = 0.4
"""Deviation of the policy, before the logistic function."""
START = (-2.0, -2.6, 0.0, -0.2)
"""Mean of the policy at first: little shake and flicker, a moving camera, nearly natural colours."""


def render(parameters: np.ndarray, *, scene: int, seed: int) -> bytes:
    """Return a clip as the bytes of an mp4 file."""
    shake, flicker, speed, colour = parameters
    noise = np.random.default_rng([scene, seed])
    picture = _texture(scene, colour)
    angle = noise.uniform(0, 2 * np.pi)
    reach = 18 * speed * np.array([np.cos(angle), np.sin(angle)])
    track = VideoTrackSettings(
        codec="libx264",
        width=WIDTH,
        height=HEIGHT,
        rate=RATE,
        time_base=1 / RATE,
        options={"crf": "20", "preset": "ultrafast", "g": "6", "bf": "0"},
    )
    with ClipWriter("mp4", track) as writer:
        for index in range(N_FRAMES):
            place = reach * (2 * index / (N_FRAMES - 1) - 1) + 3 * shake * noise.normal(size=2)
            x, y = np.clip(MARGIN + place, 0, 2 * MARGIN)
            view = picture.transform(
                (WIDTH, HEIGHT),
                Image.Transform.AFFINE,
                (1, 0, x, 0, 1, y),
                Image.Resampling.BILINEAR,
            )
            light = np.clip(1 + 0.25 * flicker * noise.normal(), 0.2, 1.8)
            pixels = np.clip(np.asarray(view, np.float32) * light, 0, 255).astype(np.uint8)
            writer.add_picture(pixels, tick=index)
        return writer.finish()


def _texture(scene: int, colour: float) -> Image.Image:
    """Return a picture of random blobs and fine grain, larger than a frame."""
    draw = np.random.default_rng([7, scene])
    size = (WIDTH + 2 * MARGIN, HEIGHT + 2 * MARGIN)
    layers = np.zeros((size[1], size[0], 3), np.float32)
    for cells, weight in ((4, 1.0), (9, 0.7), (24, 0.35)):
        coarse = draw.normal(size=(cells, cells, 3)).astype(np.float32)
        planes = [
            Image.fromarray(coarse[..., channel]).resize(size, Image.Resampling.BICUBIC)
            for channel in range(3)
        ]
        layers += weight * np.stack([np.asarray(plane) for plane in planes], axis=2)
    layers = 120 + 38 * layers
    grey = layers.mean(axis=2, keepdims=True)
    vivid = grey + 2.4 * colour * (layers - grey)
    return Image.fromarray(np.clip(vivid, 0, 255).astype(np.uint8))


@dataclass
class GaussianPolicy:
    """Policy over the parameters, improved by the policy gradient with advantages within a group."""

    mean: np.ndarray = field(default_factory=lambda: np.array(START))
    learning_rate: float = 0.25

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` draws before the logistic function."""
        return self.mean + SIGMA * rng.normal(size=(n, len(self.mean)))

    def improve(self, draws: np.ndarray, groups: np.ndarray, rewards: list[float | None]) -> None:
        """Take one step; a draw without a reward is left out of its group."""
        gradient, n = np.zeros_like(self.mean), 0
        for group in np.unique(groups):
            members = [i for i in np.flatnonzero(groups == group) if rewards[i] is not None]
            values = np.array([rewards[i] for i in members], np.float64)
            if len(values) < 2 or not values.std():
                continue
            advantages = (values - values.mean()) / values.std()
            gradient += advantages @ (draws[members] - self.mean) / SIGMA
            n += len(members)
        if n:
            self.mean = self.mean + self.learning_rate * gradient / n


def squash(draws: np.ndarray) -> np.ndarray:
    """Return parameters from 0 to 1."""
    return 1 / (1 + np.exp(-draws))


def true_quality(parameters: np.ndarray) -> float:
    """Return the quality of a clip by its parameters: 1 for a steady camera that moves, in natural colours."""
    shake, flicker, speed, colour = parameters
    frozen = max(0.0, 0.3 - speed) / 0.3
    unnatural = min(1.0, abs(colour - 0.4) / 0.4)
    return float(1 - (shake + flicker + frozen + unnatural) / 4)
