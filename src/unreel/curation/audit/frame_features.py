"""Features of one frame that do not depend on its scene, such as noise, spectrum and borders.

| feature | meaning |
|---|---|
| `noise`, `noise tails` | spread and kurtosis of the residual of a 3 x 3 median filter |
| `noise across`, `noise down` | correlation of neighbouring noise; sensors and coders differ |
| `colour noise` | spread of the noise in the two colour differences |
| `blocks 8`, `blocks 16` | steps on the borders of coding blocks over steps elsewhere |
| `spectrum k` | fraction of the power in octave k of spatial frequency; 0 is the finest |
| `spectrum peak` | the sharpest single line in the fine octaves: a trace of upsampling |
| `sharpness`, `sharpness lost` | mean edge height; its ratio to the edge height at half size |
| `brightness`, `contrast`, `saturation`, `cast red`, `cast blue` | colour means and spreads |
| `black share`, `white share` | fraction of clipped pixels |
| `border across`, `border down` | black bars at the sides, or above and below the picture |
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from unreel.media.decode import Rgb
from unreel.reviewers.baselines.fitting import Features

Floats = NDArray[np.float32]

SIDE: Final = 512
"""Side in pixels of the central square, at full scale, for the measurement of spectrum and noise."""
_FLOOR: Final = 1e-4
_OCTAVES: Final = 4
_DARK: Final = 20
_BRIGHT: Final = 250


def compute_frame_features(rgb: Rgb) -> Features:
    """Compute the features in the module's table for one frame at its own size; ratios are logarithms."""
    planes = rgb.astype(np.float32)
    red, green, blue = planes[..., 0], planes[..., 1], planes[..., 2]
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    return (
        _measure_noise(_crop_middle(grey))
        | _measure_colour_noise(_crop_middle(red - grey), _crop_middle(blue - grey))
        | _measure_blockiness(grey)
        | _measure_spectrum(_crop_middle(grey))
        | _measure_sharpness(grey)
        | _measure_colour(planes, grey)
        | _measure_borders(grey)
    )


def _crop_middle(plane: Floats) -> Floats:
    height, width = plane.shape
    top, left = max(0, (height - SIDE) // 2), max(0, (width - SIDE) // 2)
    return plane[top : top + SIDE, left : left + SIDE]


def _compute_floored_log(value: float | np.floating) -> float:
    return math.log(max(float(value), 0.0) + _FLOOR)


def _measure_noise(grey: Floats) -> dict[str, float]:
    noise = grey - ndimage.median_filter(grey, size=3)
    return {
        "noise": _compute_floored_log(noise.std()),
        "noise tails": _compute_floored_log(_compute_kurtosis(noise)) if noise.any() else 0.0,
        "noise across": _compute_correlation(noise[:, 1:], noise[:, :-1]),
        "noise down": _compute_correlation(noise[1:], noise[:-1]),
    }


def _compute_kurtosis(noise: Floats) -> float:
    """Return the kurtosis of the noise. It is computed here because scipy.stats loads slowly."""
    squares = (noise - noise.mean()) ** 2
    return float((squares**2).mean() / squares.mean() ** 2)


def _compute_correlation(some: Floats, others: Floats) -> float:
    return float((some * others).mean() / ((some**2).mean() + _FLOOR))


def _measure_colour_noise(red: Floats, blue: Floats) -> dict[str, float]:
    spread = [(plane - ndimage.uniform_filter(plane, size=3)).std() for plane in (red, blue)]
    return {"colour noise": _compute_floored_log(np.mean(spread))}


def _measure_blockiness(grey: Floats) -> dict[str, float]:
    across = np.abs(np.diff(grey, axis=1)).mean(axis=0)
    down = np.abs(np.diff(grey, axis=0)).mean(axis=1)
    found = {}
    for size in (8, 16):
        steps = [
            _compute_floored_log(line[size - 1 :: size].mean())
            - _compute_floored_log(np.delete(line, np.s_[size - 1 :: size]).mean())
            for line in (across, down)
            if len(line) >= 2 * size
        ]
        found[f"blocks {size}"] = float(np.mean(steps)) if steps else 0.0
    return found


def _measure_spectrum(grey: Floats) -> dict[str, float]:
    height, width = grey.shape
    window = np.hanning(height)[:, None] * np.hanning(width)[None]
    power = np.abs(np.fft.rfft2((grey - grey.mean()) * window)) ** 2
    away = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    total = power.sum() + _FLOOR
    found = {}
    for octave in range(_OCTAVES):
        inside = (away <= 0.5 / 2**octave) & (away > 0.25 / 2**octave)
        found[f"spectrum {octave}"] = _compute_floored_log(power[inside].sum() / total * 1e3)
    fine = power[(away <= 0.5) & (away > 0.2)]  # noqa: PLR2004  where pictures hold little
    peak = (
        _compute_floored_log(fine.max()) - _compute_floored_log(np.median(fine))
        if fine.size
        else 0.0
    )
    return found | {"spectrum peak": peak}


def _measure_sharpness(grey: Floats) -> dict[str, float]:
    half = ndimage.zoom(grey, 0.5, order=1)
    full_edges, half_edges = (
        np.hypot(ndimage.sobel(plane, 0), ndimage.sobel(plane, 1)).mean() for plane in (grey, half)
    )
    return {
        "sharpness": _compute_floored_log(full_edges),
        "sharpness lost": _compute_floored_log(full_edges) - _compute_floored_log(half_edges),
    }


def _measure_colour(planes: Floats, grey: Floats) -> dict[str, float]:
    means = planes.mean(axis=(0, 1))
    top = planes.max(axis=2)
    return {
        "brightness": float(grey.mean()),
        "contrast": float(grey.std()),
        "saturation": float(((top - planes.min(axis=2)) / (top + 1)).mean()),
        "cast red": float(means[0] - means[1]),
        "cast blue": float(means[2] - means[1]),
        "black share": float((grey < _DARK / 4).mean()),
        "white share": float((grey > _BRIGHT).mean()),
    }


def _measure_borders(grey: Floats) -> dict[str, float]:
    return {
        "border across": _compute_dark_border_share(grey.max(axis=0)),
        "border down": _compute_dark_border_share(grey.max(axis=1)),
    }


def _compute_dark_border_share(lines: Floats) -> float:
    """Return the fraction of lines before the first and after the last bright line; 1 if all are dark."""
    bright = np.flatnonzero(lines > _DARK)
    return 1 - (bright[-1] - bright[0] + 1) / len(lines) if bright.size else 1.0
