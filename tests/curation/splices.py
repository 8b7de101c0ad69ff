"""Sources of spliced videos, a recipe, a deliberately bad splice, and a check of the ground truth."""

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from footage import film, write_clip
from unreel.core.settings import read_environment_settings
from unreel.core.span import MICROSECONDS
from unreel.core.trace import Trace
from unreel.curation.curation_run import CurationRecipeJob
from unreel.curation.normalise import FrameCoordinateMapping
from unreel.curation.recipe import parse_curation_recipe
from unreel.curation.segment import ClipSegment
from unreel.curation.splice.clip import PartLevels, SplicedPartReader, encode_spliced_video
from unreel.curation.splice.plan import SplicedPart
from unreel.curation.splice.step import SPLICE
from unreel.curation.step_execution import CurationContext
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.media.decode import Rgb
from unreel.media.normalise import NormalisedClipFormat
from unreel.media.reader import MediaReader, run_trusted_task

READER = MediaReader(run_trusted_task)
WIDTH, HEIGHT = 96, 64


def draw_sources(
    root: Path, *, n_real: int, n_generated: int, rate: int, lengths_s: tuple[float, float]
) -> None:
    """Write drawn clips of random lengths and qualities; the generated ones are coded coarsely."""
    for folder, count, first in (("real", n_real, 0), ("generated/Drawn", n_generated, 100_000)):
        (root / folder).mkdir(parents=True)
        for seed in range(first, first + count):
            rng = np.random.default_rng(seed)
            n_frames = int(rate * rng.uniform(*lengths_s))
            pictures = film(seed, n_frames=n_frames, width=WIDTH, height=HEIGHT)
            crf = int(rng.integers(18, 28)) if folder == "real" else 32
            data = write_clip(pictures, rate=rate, crf=crf)
            (root / folder / f"{seed}.mp4").write_bytes(data)


def build_run(root: Path, out: Path, *, rate: int, **sections: Any) -> CurationRecipeJob:
    """A curation of the sources below `root` with `[splice]` and `[audit]`."""
    values = {
        "name": "spliced",
        "require_licence": False,
        "source": {"path": str(root)},
        "normalise": {"width": WIDTH, "height": HEIGHT, "rate": rate},
        "audit": {"texts": False},
        "freeze": {"shares": [1, 0, 0], "labels": []},
    }
    return CurationRecipeJob(
        recipe=parse_curation_recipe(values | sections),
        root=root,
        bench=CurationContext(
            place=StorageLocation(str(out)),
            access=ClipAccessSettings(settings=read_environment_settings(), trusted=True),
            ledgers=out / "ledgers",
        ),
        accept_leak=True,
    )


def splice_badly(
    real: Sequence[Path], generated: Sequence[Path], into: Path, *, form: NormalisedClipFormat
) -> tuple[Trace, ...]:
    """Join clips without matching grain: the real ones are grainy, the generated ones are not."""
    mixed = [*real[: len(real) // 2], *generated, *real[len(real) // 2 :]]
    files = {str(path): path for path in mixed}
    reader = SplicedPartReader(READER, files, form)  # type: ignore[arg-type]  paths in the place of hashes
    parts = [
        SplicedPart(
            clip=str(path),  # type: ignore[arg-type]
            start_s=Fraction(0),
            n_frames=int(READER.probe(path).video.duration_s * form.rate),  # type: ignore[union-attr]
            crop=None,
            mapping=FrameCoordinateMapping(),
            generated=path in generated,
        )
        for path in mixed
    ]
    levels = [PartLevels(grain=0.0 if part.generated else 4.0) for part in parts]
    data, traces = encode_spliced_video(parts, levels, reader, seed=0)
    into.write_bytes(data)
    return traces


def count_exact_ends(
    pieces: Iterable[ClipSegment], sources: dict[str, Path], *, rate: int
) -> tuple[int, int]:
    """Count the ends of parts whose frames show their own source, not the neighbour's, and all ends.

    Each end is decoded from the video and from the source clips, and compared.
    """
    right = total = 0
    for piece in pieces:
        parts = piece.notes[SPLICE]
        video, first = Path(piece.clip.location), 0
        starts = []
        for name, n_frames in parts:
            starts.append((sources[name.partition("+")[0]], first, n_frames))
            first += n_frames
        for (one, begin, _n_one), (other, cut, _) in itertools.pairwise(starts):
            before, after = (_read(video, tick, rate) for tick in (cut - 1, cut))
            last, start = _read(one, cut - 1 - begin, rate), _read(other, 0, rate)
            total += 2
            right += _distance(before, last) < _distance(before, start)
            right += _distance(after, start) < _distance(after, last)
    return right, total


def _read(path: Path, tick: int, rate: int) -> Rgb:
    frames = READER.frames_at(path, [int((tick + 0.5) * MICROSECONDS / rate)])
    rgb = frames.frames[0].rgb()  # type: ignore[union-attr]
    assert rgb.shape == (HEIGHT, WIDTH, 3)
    return rgb


def _distance(one: Rgb, other: Rgb) -> float:
    return float(np.abs(one.astype(np.int16) - other).mean())
