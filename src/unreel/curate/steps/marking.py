"""Overlaid marks: found on each clip and written down."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import TypeAdapter

from unreel.core.failure import Failure
from unreel.curate.piece import LeftOut, MadeClip, Piece, Sifted, failed_piece
from unreel.curate.render import store_clip
from unreel.curate.step import Found, StepName, Workbench
from unreel.curate.watermark.clip import clean_clip, watermarks_of
from unreel.curate.watermark.mark import Watermarks
from unreel.curate.watermark.text import ReadText, text_reader
from unreel.engine.place import Place
from unreel.media.reader import MediaReader

WATERMARK: Final = "watermark"
MARKS: Final = TypeAdapter(Watermarks)


def mark_pieces(bench: Workbench, pieces: Sequence[Piece], *, texts: bool, clean: bool) -> Sifted:
    """Every piece with the marks found on it in its notes, and with `clean` a copy without them.

    Texts are read where `texts`.
    """
    step = StepName(name=WATERMARK, version=1, settings={"texts": texts, "clean": clean})
    look = partial(_clean, texts=texts, media=bench.media) if clean else partial(_find, texts=texts)
    found = bench.ask(step, [piece.subject() for piece in pieces], look)
    kept: list[Piece] = []
    out: list[LeftOut] = []
    for piece, marks in zip(pieces, found, strict=True):
        if isinstance(marks, Failure):
            out.append(failed_piece(piece, WATERMARK, marks))
        else:
            notes = {**piece.notes, WATERMARK: marks["marks"]}
            cleaned = MadeClip.of(marks, bench.media) if clean else None
            kept.append(replace(piece, notes=notes, cleaned=cleaned))
    return Sifted(pieces=tuple(kept), left_out=tuple(out))


def _find(reader: MediaReader, file: Path, _given: Found, *, texts: bool) -> Found | Failure:
    found = watermarks_of(file, reader=reader, read_text=read_texts() if texts else None)
    if isinstance(found, Failure):
        return found
    return {"marks": MARKS.dump_python(found, mode="json")}


def _clean(
    reader: MediaReader, file: Path, _given: Found, *, texts: bool, media: Place
) -> Found | Failure:
    with TemporaryDirectory(prefix="unreel-") as folder:
        into = Path(folder) / "clean.mp4"
        read_text = read_texts() if texts else None
        found = clean_clip(file, reader=reader, into=into, read_text=read_text)
        if isinstance(found, Failure):
            return found
        stored = store_clip(into.read_bytes(), media, reader=reader)
    if isinstance(stored, Failure):
        return stored
    return {**stored, "marks": MARKS.dump_python(found, mode="json")}


@lru_cache(maxsize=1)
def read_texts() -> ReadText:
    """The reader of texts, loaded once for each process."""
    return text_reader()
