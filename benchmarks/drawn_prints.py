"""Fingerprints of clips that nobody filmed: pictures drawn as sums of cosines, hashed as real ones are.

A frame is a sum of 24 x 24 cosines whose sizes fall with the frequency as those of 144 filmed and generated clips do
(power -1.27), its hash the signs of its 16 x 16 lowest frequencies after the crop of each way, as PDQ's. So a
cropped copy is cropped, a stamped one is stamped, and a re-encoded one carries the noise that x264 left on those clips.
Each drawn clip is given eight times, mirrored and negated, which for the hashes are different clips.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unreel.media.fingerprint import HASH_WORDS, SKETCH_SIDE, WAYS

WAVES: Final = 24
FRAMES: Final = 8
_TURNS: Final = tuple(product((False, True), repeat=3))
"""Mirrored left to right, mirrored top to bottom, negated."""
_PICTURES: Final = 1_024
BLOCK: Final = _PICTURES * len(_TURNS)
KINDS: Final = ("re-encoded", "scaled", "cropped", "stamped")
_HASHED: Final = 16
_SAMPLES: Final = 64
_SIZE, _POWER = 4055.0, -1.27
_NOISE, _NOISE_POWER = 55.0, -0.45
_WHOLE: Final = (0.0, 0.0, 0.0, 0.0)
_CROPS: Final = ((0.05,) * 4, (0.025,) * 4, (0.05, 0.0, 0.0, 0.0), (0.05, 0.0, 0.0, 0.05))
_LOGO: Final = (0.03, 0.17, 0.04, 0.15)
_TEXT: Final = tuple((0.55 + 0.05 * n, 0.58 + 0.05 * n, 0.86, 0.94) for n in range(8))

Pictures = NDArray[np.float32]
"""Vertical waves x clips x frames x horizontal waves."""
Part = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Shares:
    """Parts of all clips that are not ordinary."""

    blank: float = 0.005
    """Black from end to end, all with one fingerprint."""
    still: float = 0.02
    """Nothing moves."""
    faded: float = 0.01
    """The first and last quarter are black."""
    takes: float = 0.05
    """In families of four: one scene taken several times, 40 to 60 bits apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A block of clips and copies of some of them."""

    words: NDArray[np.uint64]
    sketches: NDArray[np.uint8]
    copied: NDArray[np.intp]
    """Places in the block of which the last `len(copied)` rows are copies."""
    kinds: list[str]


def draw_block(number: int, n_clips: int, *, copies: float, seed: int) -> Drawn:
    """The clips of block `number`, followed by copies of about a part `copies` of them."""
    draw = np.random.default_rng([seed, number])
    n_pictures = -(-n_clips // len(_TURNS))
    pictures, ordinary = _films(draw, n_pictures)
    words, sketches = _printed(pictures, _WHOLE)
    copied = np.sort(draw.choice(ordinary, round(copies * n_pictures), replace=False))
    kinds = [KINDS[n] for n in draw.permutation(len(copied)) % len(KINDS)]
    for number_of_kind, (place, kind) in enumerate(zip(copied.tolist(), kinds, strict=True)):
        copy = _noisy(draw, pictures[:, place : place + 1])
        crop = _CROPS[number_of_kind % len(_CROPS)] if kind == "cropped" else _WHOLE
        if kind == "stamped":
            marks = _TEXT if number_of_kind % 2 else (_LOGO,)
            copy = copy + _stamp(marks)[:, None, None, :] * np.float32(draw.uniform(60, 160))
        own, sketch = _printed(copy, crop)
        words, sketches = np.concatenate([words, own]), np.concatenate([sketches, sketch])
    turned = [_turned(words, sketches, turns) for turns in _TURNS]
    return Drawn(
        words=_behind([own[0] for own in turned], n_pictures),
        sketches=_behind([own[1] for own in turned], n_pictures),
        copied=np.concatenate([copied + n_pictures * n for n in range(len(_TURNS))]),
        kinds=kinds * len(_TURNS),
    )


def _behind(parts: list[NDArray[Any]], n_pictures: int) -> NDArray[Any]:
    """All originals, then all copies."""
    return np.concatenate([p[:n_pictures] for p in parts] + [p[n_pictures:] for p in parts])


def _turned(
    words: NDArray[np.uint64], sketches: NDArray[np.uint8], turns: tuple[bool, bool, bool]
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Fingerprints of the clips mirrored and negated: waves of odd order change their sign."""
    across, down, negated = turns
    odd = np.arange(_HASHED) % 2 == 0
    flips = (odd[None, :] & across) ^ (odd[:, None] & down) ^ negated
    mask = np.packbits(flips, axis=-1).reshape(-1).view(np.uint64)
    ways = [WAYS.index(_mirrored(way, across=across, down=down)) for way in WAYS]
    # A black frame stays black.
    shown = words[:, ways].any(axis=-1, keepdims=True)
    grids = sketches.reshape(-1, SKETCH_SIDE, SKETCH_SIDE)
    grids = grids[:, :: -1 if down else 1, :: -1 if across else 1].reshape(sketches.shape)
    greys = np.where(negated, 220 - np.minimum(grids, 220), grids).astype(np.uint8)
    return words[:, ways] ^ np.where(shown, mask, np.uint64(0)), greys


def _mirrored(way: Part, *, across: bool, down: bool) -> Part:
    left, top, right, bottom = way
    left, right = (right, left) if across else (left, right)
    top, bottom = (bottom, top) if down else (top, bottom)
    return left, top, right, bottom


def _films(draw: np.random.Generator, n_clips: int) -> tuple[Pictures, NDArray[np.intp]]:
    """Clips, and the places of those that show something of their own."""
    shares = Shares()
    n_takes = round(shares.takes * n_clips) // 4 * 4
    n_drawn = n_clips + n_takes // 4
    still = draw.standard_normal((WAVES, n_drawn, 1, WAVES), np.float32)
    moving = draw.standard_normal((WAVES, n_drawn, FRAMES, WAVES), np.float32)
    for frame in range(1, FRAMES):
        moving[:, :, frame] = 0.5 * moving[:, :, frame - 1] + 0.75**0.5 * moving[:, :, frame]
    kind = draw.random(n_clips)
    stays = draw.beta(1.0, 0.9, n_drawn).astype(np.float32)
    stays[:n_clips][kind < shares.still] = 0.999
    shown = np.sqrt(stays)[:, None, None] * still + np.sqrt(1 - stays)[:, None, None] * moving
    scenes, shown = shown[:, n_clips:].repeat(4, axis=1), shown[:, :n_clips]
    alike = draw.uniform(0.70, 0.81, n_takes // 4).repeat(4).astype(np.float32)[:, None, None]
    shown[:, :n_takes] = np.sqrt(alike) * scenes + np.sqrt(1 - alike) * shown[:, :n_takes]
    shown *= _falling(_SIZE, _POWER)[:, None, None, :]
    shown *= draw.lognormal(0, 0.35, n_clips).astype(np.float32)[:, None, None]
    faded = (kind > shares.still) & (kind < shares.still + shares.faded)
    blank = kind > 1 - shares.blank
    faded[:n_takes], blank[:n_takes] = False, False
    shown[:, faded, :2], shown[:, faded, -2:] = 0, 0
    shown[:, blank] = 0
    return shown, np.flatnonzero(~blank & (np.arange(n_clips) >= n_takes))


def _noisy(draw: np.random.Generator, pictures: Pictures) -> Pictures:
    """What an encoder leaves."""
    size = np.float32(draw.lognormal(0, 0.35))
    noise = draw.standard_normal(pictures.shape, np.float32) * size
    return pictures + noise * _falling(_NOISE, _NOISE_POWER)[:, None, None, :]


def _falling(size: float, power: float) -> NDArray[np.float32]:
    """Sizes of waves by their frequency; the mean brightness is left out."""
    apart = np.hypot(*np.mgrid[:WAVES, :WAVES])
    apart[0, 0] = 1
    sizes = (size * apart**power).astype(np.float32)
    sizes[0, 0] = 0
    return sizes


def _stamp(marks: tuple[Part, ...]) -> NDArray[np.float32]:
    """The waves of bright rectangles: left, right, top, bottom."""
    across = np.arange(1, WAVES) * np.pi

    def waves(start: float, stop: float) -> NDArray[np.float64]:
        bent = (np.sin(across * stop) - np.sin(across * start)) / across
        return np.append(stop - start, bent * 2**0.5) * 128**0.5

    each = [np.outer(waves(*mark[2:]), waves(*mark[:2])) for mark in marks]
    return np.sum(each, axis=0).astype(np.float32)


def _printed(pictures: Pictures, crop: Part) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Hashes and sketches of clips whose sides were cut off by `crop`."""
    _, n_clips, _, _ = pictures.shape
    bits = np.empty((n_clips, len(WAYS), FRAMES, _HASHED**2 // 8), np.uint8)
    for number, way in enumerate(WAYS):
        seen = _seen(
            pictures, _hashing(crop, way, vertical=True), _hashing(crop, way, vertical=False)
        )
        packed = np.packbits(np.moveaxis(seen > 0, 0, 2), axis=-1)
        bits[:, number] = packed.reshape(n_clips, FRAMES, -1)
    cells = [_sampled(crop, _WHOLE, SKETCH_SIDE, vertical=vertical) for vertical in (True, False)]
    grids = np.moveaxis(_seen(pictures.mean(axis=2, keepdims=True), *cells)[:, :, 0], 0, 1)
    greys = np.rint(np.clip(110 + grids / 128, 0, 255)).astype(np.uint8)
    words = bits.view(np.uint64).reshape(n_clips, len(WAYS), FRAMES, HASH_WORDS)
    return words, greys.reshape(n_clips, SKETCH_SIDE**2)


def _seen(pictures: Pictures, down: Pictures, across: Pictures) -> Pictures:
    """Vertical x clips x frames x horizontal, after a linear look from both sides."""
    _, n_clips, n_frames, _ = pictures.shape
    half = (pictures.reshape(-1, WAVES) @ across.T).reshape(WAVES, -1)
    return (down @ half).reshape(len(down), n_clips, n_frames, len(across))


@cache
def _hashing(crop: Part, way: Part, *, vertical: bool) -> NDArray[np.float32]:
    """The 16 lowest frequencies of what is left of a picture."""
    order = np.arange(1, _HASHED + 1)[:, None]
    waves = np.cos(np.pi / 2 / _SAMPLES * order * (2 * np.arange(_SAMPLES) + 1))
    looked: NDArray[np.float32] = waves.astype(np.float32) @ _sampled(
        crop, way, _SAMPLES, vertical=vertical
    )
    return looked


def _sampled(crop: Part, way: Part, n_samples: int, *, vertical: bool) -> NDArray[np.float32]:
    """Every wave at points across what two crops leave, one after the other."""
    points = (np.arange(n_samples) + 0.5) / n_samples
    for part in (way, crop):
        start, stop = part[vertical], part[2 + vertical]
        points = start + (1 - start - stop) * points
    waves = np.cos(np.pi * np.outer(points, np.arange(WAVES))) * 2**0.5
    waves[:, 0] = 1
    return waves.astype(np.float32)
