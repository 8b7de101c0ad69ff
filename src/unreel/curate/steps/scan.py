"""One pass over each file: its shots, their borders and measures, and the fingerprint of the whole."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Literal

from unreel.core.failure import Failure
from unreel.curate.borders import find_borders
from unreel.curate.duplicates import fingerprint
from unreel.curate.piece import LeftOut, Piece, Sifted, failed_piece
from unreel.curate.screens import measure
from unreel.curate.shots import Shot, find_cuts, split_shots
from unreel.curate.step import Found, StepName, Workbench
from unreel.curate.transnet import TransNet
from unreel.media.reader import MediaReader
from unreel.media.scan import Scan
from unreel.media.wire import write_exact

SCAN: Final = "scan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutter:
    """How cuts are found; the threshold is that of `colour`."""

    detector: Literal["colour", "transnetv2"]
    threshold: float


def scan_pieces(
    bench: Workbench, pieces: Sequence[Piece], *, cutter: Cutter | None, prints: bool
) -> Sifted:
    """Every piece, still a whole file, with its measures and, where `prints`, its fingerprint.

    Without a `cutter` no cuts are looked for.
    """
    told = None if cutter is None else asdict(cutter)
    step = StepName(name=SCAN, version=2, settings={"cutter": told, "prints": prints})
    look = partial(_scan, cutter=cutter, prints=prints)
    kept: list[Piece] = []
    out: list[LeftOut] = []
    found = bench.ask(step, [piece.subject() for piece in pieces], look)
    for piece, measures in zip(pieces, found, strict=True):
        if isinstance(measures, Failure):
            out.append(failed_piece(piece, SCAN, measures))
        else:
            kept.append(replace(piece, measures=measures))
    return Sifted(pieces=tuple(kept), left_out=tuple(out))


def _scan(
    reader: MediaReader, file: Path, _given: Found, *, cutter: Cutter | None, prints: bool
) -> Found | Failure:
    scan = reader.scan(file)
    if isinstance(scan, Failure):
        return scan
    match cutter:
        case None:
            cuts: tuple[int, ...] | Failure = ()
        case Cutter(detector="colour"):
            cuts = find_cuts(scan.histograms, threshold=cutter.threshold)
        case _:
            cuts = _transnet().read_cuts(reader, file)
    if isinstance(cuts, Failure):
        return cuts
    found: dict[str, Any] = {"shots": [_told(scan, shot) for shot in split_shots(scan, cuts)]}
    if prints:
        found["fingerprint"] = fingerprint(scan, find_borders(scan.picked)).as_json()
    return found


@lru_cache(maxsize=1)
def _transnet() -> TransNet:
    return TransNet()


def _told(scan: Scan, shot: Shot) -> dict[str, Any]:
    part = _part(scan, shot)
    measured = measure(part, clip="")
    return {
        "first_frame": shot.first_frame,
        "end_frame": shot.first_frame + shot.n_frames,
        "start_s": write_exact(shot.start_s - scan.instants_s[0]),
        "length_s": write_exact(shot.length_s),
        "borders": asdict(find_borders(part.picked)),
        "motion": measured.motion,
        "sharpness": measured.sharpness,
        "noise": measured.noise,
        "lightness": measured.lightness,
    }


def _part(scan: Scan, shot: Shot) -> Scan:
    """The shot alone; one too short to hold a picked frame is judged by those of the whole clip."""
    place = slice(shot.first_frame, shot.first_frame + shot.n_frames)
    picked = tuple(frame for frame in scan.picked if place.start <= frame.index < place.stop)
    return replace(
        scan,
        instants_s=scan.instants_s[place],
        end_s=shot.end_s,
        histograms=scan.histograms[place],
        lightness=scan.lightness[place],
        changes=scan.changes[place],
        stirs=scan.stirs[place],
        picked=picked or scan.picked,
    )
