"""Manifest of a frozen benchmark: one Parquet row for each clip, reproducible byte by byte."""

from dataclasses import replace
from typing import IO, Any, Final

from unreel.benchmarks.entry import DeclaredFacts
from unreel.benchmarks.table_entries import convert_entry_to_record
from unreel.core.clip import Clip
from unreel.core.safe_names import get_safe_suffix
from unreel.core.span import convert_to_microseconds
from unreel.curation.segment import ClipSegment, build_hashed_path
from unreel.curation.step_execution import format_canonical_json, to_json_values

METADATA: Final = "metadata.parquet"
_AS_JSON: Final = ("traces", "ratings", "votes")
_TYPED: Final[dict[str, type]] = {
    "score": int,
    "width": int,
    "height": int,
    "n_frames": int,
    "duration_us": int,
    "size_bytes": int,
    "has_sound": bool,
}
_GROUP: Final = 10_000
"""Number of rows of a Parquet row group, which a reader loads at once."""


def build_media_path(clip: Clip) -> str:
    """Return the path of the clip's file below the folder of its split; its content hash is its name."""
    return f"media/{build_hashed_path(clip.id, get_safe_suffix(clip.location))}"


def get_manifest_file_name(clip: Clip, *, in_place: bool) -> str:
    """Return the clip's path in the split's folder or, with `in_place`, the original file's location."""
    return clip.location if in_place else build_media_path(clip)


def build_first_frame_path(piece: ClipSegment) -> str:
    """Return the path of the clip's first frame below the folder of its split; "" if none is stored."""
    picture = piece.first_frame
    return "" if picture is None else f"first_frames/{build_hashed_path(piece.clip.id, '.jpg')}"


def build_manifest_row(piece: ClipSegment, split: str, *, in_place: bool = False) -> dict[str, Any]:
    """Return the manifest row of the segment: declared fields, measurements, and results of steps."""
    facts = piece.clip.facts
    video = facts.video
    measured = DeclaredFacts(
        width=video.width,
        height=video.height,
        rate=video.average_rate,
        n_frames=video.n_frames,
        duration_us=convert_to_microseconds(video.duration_s),
    )
    copy, picture = piece.cleaned, piece.first_frame
    cleaned = None if copy is None else get_manifest_file_name(copy, in_place=in_place)
    entry = replace(piece.entry, split=split, facts=measured, cleaned=cleaned)
    record = convert_entry_to_record(
        entry, file_name=get_manifest_file_name(piece.clip, in_place=in_place)
    )
    for name in _AS_JSON:
        record[name] = format_canonical_json(record[name])
    return record | {
        "sha256": piece.clip.id,
        "size_bytes": facts.size_bytes,
        "codec": video.codec,
        "has_sound": bool(facts.audio),
        "first_frame": picture.location if picture and in_place else build_first_frame_path(piece),
        "source_video": piece.source,
        "family": piece.family,
        "notes": format_canonical_json(
            {step: to_json_values(note) for step, note in piece.notes.items()}
        ),
    }


class ManifestWriter:
    """Writer of manifest rows as a Parquet file into `sink`; rows must be sorted by name."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink, self._rows = sink, list[dict[str, Any]]()
        self._writer: Any = None

    def add(self, row: dict[str, Any]) -> None:
        """Add the manifest row of one clip."""
        self._rows.append(row)
        if len(self._rows) == _GROUP:
            self._put_down()

    def end(self) -> None:
        """Write the remaining manifest rows and close the writer; at least one row must have been added."""
        if self._rows:
            self._put_down()
        self._writer.close()

    def _put_down(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            kinds = {int: pa.int64(), bool: pa.bool_()}
            fields = [
                (name, kinds.get(_TYPED.get(name, str), pa.string())) for name in self._rows[0]
            ]
            self._writer = pq.ParquetWriter(self._sink, pa.schema(fields), compression="zstd")
        self._writer.write_table(
            pa.Table.from_pylist(self._rows, schema=self._writer.schema), row_group_size=_GROUP
        )
        self._rows = []
