"""What an annotated copy costs: processor and wall time, peak memory and size, on a drawn clip.

    python benchmarks/annotated_copy.py --seconds 60 --width 1920 --height 1080
    python benchmarks/annotated_copy.py --seconds 5 --preset ultrafast --preset superfast --preset veryfast

Without a preset the copy is made as `unreel review --out` makes it: in a confined child, with the limits
of the settings. With presets each is tried in this process on the same clip. Nothing leaves this machine.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from synthesise import ClipRecipe, synthesise
from unreel.core.box import Box
from unreel.core.failure import Failure
from unreel.core.settings import read_environment_settings
from unreel.core.span import MICROSECONDS, TimeSpan
from unreel.core.trace import BoxAt
from unreel.media import annotated_copy as copying
from unreel.media.access import open_file_sandbox
from unreel.media.messages import convert_to_json_fields
from unreel.media.overlay import OverlayCommentary, OverlayTrace, ReviewerOverlayLane
from unreel.media.reader import AnnotatedCopyReceiver
from unreel.media.sandbox import SandboxLimits

RATE = 24
_MB = 1e6


def main(words: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """Measure what `words` ask for; the figures of each way by its name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--width", type=int, default=1920)
    parser.add_argument("--height", type=int, default=1080)
    parser.add_argument("--scene", choices=["ball", "room", "street"], default="street")
    parser.add_argument("--preset", action="append", default=[], help="of x264; repeatable")
    asked = parser.parse_args(words)
    recipe = ClipRecipe(
        scene=asked.scene,
        width=asked.width,
        height=asked.height,
        n_frames=RATE * asked.seconds,
        tone_hz=440,
    )
    with tempfile.TemporaryDirectory(prefix="unreel-copy-") as folder:
        clip = Path(folder) / "clip.mp4"
        clip.write_bytes(synthesise(recipe))
        print(f"drawn: {clip.stat().st_size / _MB:.1f} MB", file=sys.stderr)
        said = _commentary(asked.seconds)
        figures = {preset: _here(clip, said, preset) for preset in asked.preset}
        if not figures:
            figures["confined"] = _confined(clip, said, Path(folder) / "copy.mp4")
    print(json.dumps(figures, indent=2))
    return figures


def _commentary(seconds: int) -> OverlayCommentary:
    duration_us = seconds * MICROSECONDS
    half_us = duration_us // 2
    where = (BoxAt(half_us, Box(0.4, 0.5, 0.6, 0.9)),)
    marks = (OverlayTrace(span=TimeSpan(half_us, duration_us), track=where, ends=False),)
    lanes = (
        ReviewerOverlayLane(
            text="one: generated. A wheel comes off and floats up beside the car.", traces=marks
        ),
        ReviewerOverlayLane(text="another: real", colour=2),
    )
    return OverlayCommentary(lanes=lanes, duration_us=duration_us, notes=("This is an opinion.",))


def _confined(clip: Path, said: OverlayCommentary, copy: Path) -> dict[str, Any]:
    settings = read_environment_settings()
    seconds = settings.media_seconds + settings.annotate_pace * said.duration_us // MICROSECONDS
    limits = SandboxLimits(seconds=seconds, memory_mb=settings.media_mb)
    with open_file_sandbox(settings) as sandbox, copy.open("wb") as into:
        sandbox.protection()  # The zygote is warm before the clock starts.
        taker = AnnotatedCopyReceiver(
            into, duration_us=said.duration_us, on_frames=lambda _n_frames: None
        )
        request = {"commentary": convert_to_json_fields(said)}
        started_s = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result, peak_mb = sandbox.run(
            "annotate", clip, request=request, limits=limits, on_part=taker.add
        )
        wall_s = time.monotonic() - started_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)  # the zygote has ended, with its children
    if isinstance(result, Failure) or peak_mb is None:
        sys.exit(f"no copy: {result}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "wall_s": round(wall_s, 1),
        "cpu_s": round(cpu_s, 1),
        "peak_mb": round(peak_mb),
        "copy_mb": round(copy.stat().st_size / _MB, 1),
    }


def _here(clip: Path, said: OverlayCommentary, preset: str) -> dict[str, Any]:
    copying.OPTIONS["preset"] = preset
    started_s, cpu_s = time.monotonic(), time.process_time()
    size = 0
    with clip.open("rb") as file:
        for piece in copying.iter_annotated_copy(file, said):
            size = max(size, piece.header["at"] + len(piece.blobs[0]))
    return {
        "wall_s": round(time.monotonic() - started_s, 1),
        "cpu_s": round(time.process_time() - cpu_s, 1),
        "copy_mb": round(size / _MB, 1),
    }


if __name__ == "__main__":
    main()
