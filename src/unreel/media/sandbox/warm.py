"""Waking up everything that a task touches while it may still be loaded.

PyAV, NumPy and Pillow import parts of themselves at first use, and the C library loads parts of itself
too. A confined child can load nothing, so the zygote does one of each beforehand, on its own clips.
"""

import io
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

from unreel.core.errors import MediaError
from unreel.media.payload import Payload, Task, finish

_REQUESTS: Final[Mapping[str, tuple[dict[str, Any], ...]]] = {
    "probe": ({},),
    "frames": (
        {"sampling": "uniform-2", "longest_side": 32},
        {"sampling": "fps-5-max-3"},
    ),
    "sound": ({},),
    "normalise": ({"width": 32, "height": 16, "rate": "12/1", "crf": 40, "sound": "kept"},),
    "render": (
        {
            "first_frame": 1,
            "end_frame": None,
            "length_s": "1/4",
            "crop": {"left": 2, "top": 2, "width": 16, "height": 16},
            "form": None,
        },
    ),
    "instants": ({"at_us": [0, 100_000]},),
    "annotate": (
        {
            "lanes": [
                {
                    "says": "warm \u00e9",
                    "colour": 0,
                    "marks": [
                        {
                            "start_us": 0,
                            "end_us": 200_000,
                            "ends": False,
                            "track": [{"at_us": 0, "x0": 0.2, "y0": 0.2, "x1": 0.5, "y1": 0.5}],
                        }
                    ],
                }
            ],
            "notes": ["warm"],
            "duration_us": 333_333,
        },
    ),
    "scan": ({},),
}


_ONCE: Final[Mapping[str, int]] = {"normalise": 0, "render": 0, "instants": 0, "annotate": 4}
"""Tasks that read as the others do and then write one form, whatever they read: one clip is enough, by its
place. A copy of the mute one is made quickest, and starting is waited for."""


def warm_up(tasks: Mapping[str, Task]) -> None:
    """Run each task of `tasks` that is known here on a clip of each container, whole and damaged."""
    known = tasks.keys() & _REQUESTS.keys()
    if known:
        _import_all("av")
    for place, clip in enumerate(_clips() if known else ()):
        for name in (task for task in known if _ONCE.get(task, place) == place):
            for request in _REQUESTS[name]:
                for data in (clip, clip[: len(clip) // 2]):
                    with suppress(MediaError):
                        finish(tasks[name](io.BytesIO(data), request), _forget)


def _forget(_part: Payload) -> None:
    """A warm-up keeps nothing."""


def _import_all(package: str) -> None:
    # PyAV imports a kind of stream when a file first holds one: subtitles, data, attachments.
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


def _clips() -> Iterator[bytes]:
    from unreel.media.synthesise import ClipRecipe, synthesise

    small = ClipRecipe(width=64, height=64, n_frames=8, gop=4)
    yield synthesise(replace(small, container="mp4", tone_hz=440, rotation_deg=90))
    yield synthesise(replace(small, container="mkv", tone_hz=440))
    yield synthesise(replace(small, container="webm", tone_hz=440))
    yield synthesise(replace(small, container="ts"))
    yield synthesise(replace(small, container="gif"))
