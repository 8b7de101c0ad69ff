"""The table of a frozen benchmark: one row for each clip, the same bytes for the same clips."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from unreel.benchmarks.entry import DeclaredFacts
from unreel.benchmarks.records import to_record
from unreel.core.clip import Clip
from unreel.core.names import plain_suffix
from unreel.core.span import to_us
from unreel.curate.piece import Piece, stored_name
from unreel.curate.step import as_plain, to_json

METADATA: Final = "metadata.parquet"
_AS_JSON: Final = ("traces", "ratings", "votes")


def media_name(clip: Clip) -> str:
    """Where the clip lies below the folder of its split: named by its content."""
    return f"media/{stored_name(clip.id, plain_suffix(clip.location))}"


def picture_name(piece: Piece) -> str:
    """Where the clip's first frame lies below the folder of its split; "" where it is not kept."""
    picture = piece.first_frame
    return "" if picture is None else f"first_frames/{stored_name(piece.clip.id, '.jpg')}"


def manifest_row(piece: Piece, split: str) -> dict[str, Any]:
    """The piece as one row: what its makers say, what was measured, what steps found out."""
    facts = piece.clip.facts
    video = facts.video
    measured = DeclaredFacts(
        width=video.width,
        height=video.height,
        rate=video.average_rate,
        n_frames=video.n_frames,
        duration_us=to_us(video.duration_s),
    )
    cleaned = None if piece.cleaned is None else media_name(piece.cleaned)
    entry = replace(piece.entry, split=split, facts=measured, cleaned=cleaned)
    record = to_record(entry, file_name=media_name(piece.clip))
    for name in _AS_JSON:
        record[name] = to_json(record[name])
    return record | {
        "sha256": piece.clip.id,
        "size_bytes": facts.size_bytes,
        "codec": video.codec,
        "has_sound": bool(facts.audio),
        "first_frame": picture_name(piece),
        "source_video": piece.source,
        "family": piece.family,
        "notes": to_json({step: as_plain(note) for step, note in piece.notes.items()}),
    }


def write_manifest(rows: Sequence[dict[str, Any]]) -> bytes:
    """`rows` as a Parquet file, sorted by name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {int: pa.int64(), bool: pa.bool_()}
    whole = {"score": int, "width": int, "height": int, "n_frames": int, "duration_us": int}
    typed = whole | {"size_bytes": int, "has_sound": bool}
    schema = pa.schema([(name, kinds.get(typed.get(name, str), pa.string())) for name in rows[0]])
    ordered = sorted(rows, key=lambda row: row["name"])
    sink = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist(ordered, schema=schema),
        sink,
        compression="zstd",
        row_group_size=10_000,
    )
    return sink.getvalue()
