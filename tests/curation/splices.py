"""Sources of spliced videos, a recipe, a deliberately bad splice, and a check of the ground truth."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from footage import film, write_clip
from unreel.core.settings import read_environment_settings
from unreel.core.span import MICROSECONDS, TimeSpan, convert_to_microseconds
from unreel.curation.curation_run import CurationRecipeJob
from unreel.curation.recipe import parse_curation_recipe
from unreel.curation.segment import ClipSegment
from unreel.curation.splice.step import SPLICE
from unreel.curation.step_execution import CurationContext
from unreel.engine.location import StorageLocation
from unreel.engine.storage_access import ClipAccessSettings
from unreel.media.decode import Rgb
from unreel.media.encode import ClipWriter, VideoTrackSettings
from unreel.media.messages import MOST_INSTANTS
from unreel.media.normalise import NormalisedClipFormat, fit_picture_inside
from unreel.media.reader import MediaReader, run_trusted_task

READER = MediaReader(run_trusted_task)
WIDTH, HEIGHT = 96, 64


def draw_sources(  # noqa: PLR0913  what the clips are and how many
    root: Path,
    *,
    n_real: int,
    n_generated: int,
    rate: int,
    lengths_s: tuple[float, float],
    generated_crf: int | None = 32,
    seed: int = 0,
) -> None:
    """Write drawn clips of random lengths and qualities.

    Real and generated scenes come from one distribution. The generated ones are coded coarsely, or
    as the real ones if `generated_crf` is None.
    """
    first = 1_000_000 * seed
    folders = ("real", n_real, first), ("generated/Drawn", n_generated, first + 100_000)
    for folder, count, start in folders:
        (root / folder).mkdir(parents=True)
        for scene in range(start, start + count):
            rng = np.random.default_rng(scene)
            n_frames = int(rate * rng.uniform(*lengths_s))
            pictures = film(scene, n_frames=n_frames, width=WIDTH, height=HEIGHT)
            crf = int(rng.integers(18, 28))
            if folder != "real" and generated_crf is not None:
                crf = generated_crf
            data = write_clip(pictures, rate=rate, crf=crf)
            (root / folder / f"{scene}.mp4").write_bytes(data)


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
) -> tuple[list[TimeSpan], list[TimeSpan]]:
    """Join clips as they are: the generated ones come from another codec and lost their grain.

    Returns the spans of all parts and of the generated ones.
    """
    pictures: list[Rgb] = []
    parts, generated_parts = [], []
    for path in (*real[: len(real) // 2], *generated, *real[len(real) // 2 :]):
        first, shown = len(pictures), path
        if path in generated:
            shown = into.with_suffix(".part.mp4")
            coarse = {"qmin": "16", "qmax": "16"}
            shown.write_bytes(
                encode_pictures(read_pictures(path, form.rate), form.rate, "mpeg4", coarse)
            )
        pictures += read_pictures(shown, form.rate)
        ends = (convert_to_microseconds(tick / form.rate) for tick in (first, len(pictures)))
        parts.append(TimeSpan(*ends))
        if path in generated:
            generated_parts.append(parts[-1])
    fixed = {"qp": str(form.crf), "preset": "veryfast", "bf": "0", "g": "48", "sc_threshold": "0"}
    into.write_bytes(encode_pictures(pictures, form.rate, "libx264", fixed))
    return parts, generated_parts


def read_pictures(path: Path, rate: Fraction) -> list[Rgb]:
    duration_s = READER.probe(path).video.duration_s  # type: ignore[union-attr]
    moments = [
        convert_to_microseconds((tick + Fraction(1, 2)) / rate)
        for tick in range(int(duration_s * rate))
    ]
    return list(_read_at(path, moments))


def encode_pictures(
    pictures: Iterable[Rgb], rate: Fraction, codec: str, options: dict[str, str]
) -> bytes:
    track = VideoTrackSettings(
        codec=codec, width=WIDTH, height=HEIGHT, rate=rate, time_base=1 / rate, options=options
    )
    with ClipWriter("mp4", track) as writer:
        for tick, rgb in enumerate(pictures):
            writer.add_picture(rgb, tick=tick)
        return writer.finish()


def count_exact_ends(
    pieces: Iterable[ClipSegment], sources: dict[str, Path], *, rate: int
) -> tuple[int, int]:
    """Count the ends of parts whose frames show their own source, not the neighbour's, and all ends.

    Each end is decoded from the video and from the source clips, and compared.
    """
    right = total = 0
    for piece in pieces:
        ends, cuts = [], [0]
        for name, n_frames in piece.notes[SPLICE]:
            frames = _read(sources[name.partition("+")[0]], [0, n_frames - 1], rate)
            ends.append((frames[0], frames[-1]))  # one frame if the part has one
            cuts.append(cuts[-1] + n_frames)
        beside = sorted({tick for cut in cuts[1:-1] for tick in (cut - 1, cut)})
        shown = dict(zip(beside, _read(Path(piece.clip.location), beside, rate), strict=True))
        for cut, ((_, last), (start, _)) in zip(cuts[1:-1], itertools.pairwise(ends), strict=True):
            before, after = shown[cut - 1], shown[cut]
            total += 2
            right += _distance(before, last) < _distance(before, start)
            right += _distance(after, start) < _distance(after, last)
    return right, total


def _read(path: Path, ticks: Sequence[int], rate: int) -> list[Rgb]:
    moments = [int((tick + 0.5) * MICROSECONDS / rate) for tick in ticks]
    return [fit_picture_inside(rgb, width=WIDTH, height=HEIGHT) for rgb in _read_at(path, moments)]


def _read_at(path: Path, moments: Sequence[int]) -> Iterator[Rgb]:
    for first in range(0, len(moments), MOST_INSTANTS):
        frames = READER.frames_at(path, moments[first : first + MOST_INSTANTS])
        yield from (frame.rgb() for frame in frames.frames)  # type: ignore[union-attr]


def _distance(one: Rgb, other: Rgb) -> float:
    return float(np.abs(one.astype(np.int16) - other).mean())
