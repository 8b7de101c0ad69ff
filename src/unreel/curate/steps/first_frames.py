"""First frames as pictures of their own: what image-to-video generators start from."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from unreel.core.failure import Failure
from unreel.core.identity import bytes_id
from unreel.core.names import read_clip_id
from unreel.curate.lengths import first_frame
from unreel.curate.piece import LeftOut, MadeFile, Piece, Sifted, failed_piece, stored_name
from unreel.curate.step import Found, StepName, Workbench
from unreel.engine.place import Place
from unreel.media.reader import MediaReader

FIRST_FRAME: Final = "first_frame"


def keep_first_frames(bench: Workbench, pieces: Sequence[Piece]) -> Sifted:
    """Every piece with its first frame as a JPEG at full size."""
    step = StepName(name=FIRST_FRAME, version=1)
    found = bench.ask(step, [p.subject() for p in pieces], partial(_look, media=bench.media))
    kept: list[Piece] = []
    out: list[LeftOut] = []
    for piece, made in zip(pieces, found, strict=True):
        if isinstance(made, Failure):
            out.append(failed_piece(piece, FIRST_FRAME, made))
            continue
        sha256 = read_clip_id(made["sha256"], FIRST_FRAME)
        location = (bench.media / stored_name(sha256, ".jpg")).uri
        picture = MadeFile(sha256=sha256, location=location, size_bytes=made["bytes"])
        kept.append(replace(piece, first_frame=picture))
    return Sifted(pieces=tuple(kept), left_out=tuple(out))


def _look(reader: MediaReader, file: Path, _given: Found, *, media: Place) -> Found | Failure:
    frame = first_frame(reader, file)
    if isinstance(frame, Failure):
        return frame
    sha256 = bytes_id(frame.data)
    name = stored_name(sha256, ".jpg")
    media.put(name, frame.data)
    return {"sha256": sha256, "name": name, "bytes": len(frame.data)}
