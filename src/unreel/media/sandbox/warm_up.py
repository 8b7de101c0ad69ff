"""Loading everything that a task needs while it may still be loaded.

PyAV, NumPy and Pillow import parts of themselves at first use, and the C library loads parts of itself
too. A confined child can load nothing, so the zygote runs each task on its own clips before it forks the
first child for it. `tests/media/sandbox/test_warm_up.py` shows that these clips are enough.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from unreel.media.payload import Task, TaskPayload, finish

_CLIPS: Final = Path(__file__).parent / "clips"
_CLIP: Final = "clip.mp4"
"""With sound and rotation."""
_TRANSPORT: Final = "clip.ts"
"""Names its service, whose character set the C library loads."""

_FORM: Final = {"width": 32, "height": 16, "rate": "12/1", "crf": 40, "sound": "kept"}
_REQUESTS: Final[Mapping[str, tuple[dict[str, Any], ...]]] = {
    "probe": ({},),
    "frames": (
        {"sampling": "uniform-2", "longest_side": 32},
        {"sampling": "fps-5-max-3"},
    ),
    "sound": ({},),
    "normalise": (_FORM,),
    "render": (
        {
            "first_frame": 1,
            "end_frame": None,
            "length_s": "1/4",
            "crop": {"left": 2, "top": 2, "width": 16, "height": 16},
            "form": None,
        },
        {"first_frame": 1, "end_frame": None, "length_s": "1/4", "crop": None, "form": _FORM},
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


def warm_up(name: str, task: Task) -> None:
    """Run `task` on clips of this package; a `name` that has no request here loads nothing late."""
    for request in _REQUESTS.get(name, ()):
        for clip in (_CLIP, _TRANSPORT):
            finish(task(io.BytesIO((_CLIPS / clip).read_bytes()), request), _discard_part)


def _discard_part(_part: TaskPayload) -> None:
    """Discard a part of a reply."""
