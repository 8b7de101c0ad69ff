"""MP4 and MOV files that lie."""

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from tiny_clips import MP4, Recipe, make

STBL = (b"moov", b"trak", b"mdia", b"minf", b"stbl")
DREF = (b"moov", b"trak", b"mdia", b"minf", b"dinf", b"dref")


def box(kind: bytes, *payload: bytes) -> bytes:
    content = b"".join(payload)
    return struct.pack(">I4s", 8 + len(content), kind) + content


def full(*words: int) -> bytes:
    """Version and flags 0, then 32-bit words."""
    return struct.pack(f">{len(words) + 1}I", 0, *words)


def boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 0
    while position + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, position)
        yield kind, data[position + 8 : position + size]
        position += size


def rewrite(data: bytes, path: tuple[bytes, ...], change: Callable[[bytes], bytes]) -> bytes:
    """`data` with the content of the first box at `path` changed. The index comes last in the file,
    so that it may grow without moving a sample."""
    out, done = [], False
    for kind, content in boxes(data):
        if kind == path[0] and not done:
            done = True
            inner = change(content) if len(path) == 1 else rewrite(content, path[1:], change)
            out.append(box(kind, inner))
        else:
            out.append(box(kind, content))
    assert done, path
    return b"".join(out)


def put(data: bytes, path: tuple[bytes, ...], at: int, value: bytes) -> bytes:
    return rewrite(data, path, lambda old: old[:at] + value + old[at + len(value) :])


def word(value: int) -> bytes:
    return struct.pack(">I", value)


def external(kind: bytes, location: bytes) -> bytes:
    """A track whose samples are said to be in another file."""
    if kind == b"alis":
        alias = bytes(6) + struct.pack(">HH", 150, 2) + bytes(140) + location
        entry = box(kind, full(), alias)
    else:
        entry = box(kind, full(), location + b"\0")
    return rewrite(make(MP4), DREF, lambda _: full(1) + entry)


def index_first(data: bytes) -> bytes:
    """The same clip as players on the web want it: index, then samples."""
    content = dict(boxes(data))
    index = bytearray(box(b"moov", content[b"moov"]))
    shift, at = len(index), index.find(b"stco")
    while at >= 0:
        (count,) = struct.unpack_from(">I", index, at + 8)
        for entry in range(at + 12, at + 12 + 4 * count, 4):
            struct.pack_into(">I", index, entry, struct.unpack_from(">I", index, entry)[0] + shift)
        at = index.find(b"stco", at + 4)
    rest = [box(kind, inner) for kind, inner in boxes(data) if kind not in (b"ftyp", b"moov")]
    return box(b"ftyp", content[b"ftyp"]) + bytes(index) + b"".join(rest)


def nested(depth: int) -> bytes:
    """Boxes that hold nothing but each other."""
    kinds = (b"moov", b"trak")
    return box(b"ftyp", b"isom", word(0)) + b"".join(
        struct.pack(">I4s", 8 * (depth - level), kinds[level % 2]) for level in range(depth)
    )


def compressed_index() -> bytes:
    """A few hundred kilobytes that unpack to a two-gigabyte index."""
    packed = zlib.compress(bytes(64 * 1024**2), 9)
    return box(b"ftyp", b"qt  ", word(0)) + box(
        b"moov", box(b"cmov", box(b"dcom", b"zlib"), box(b"cmvd", word(2**31 - 1), packed))
    )


def crafted() -> dict[str, bytes]:
    """Name to content."""
    sound = make(MP4)
    fast = index_first(sound)
    trak = (b"moov", b"trak")
    mdia = (*trak, b"mdia")
    return {
        "mp4-first-byte.mp4": sound[:1],
        "mp4-first-box-only.mp4": sound[:32],
        "mp4-without-index.mp4": sound[: len(sound) // 2],
        "mp4-cut-in-index.mp4": sound[:-200],
        "mp4-without-last-byte.mp4": sound[:-1],
        "mp4-cut-in-samples.mp4": fast[: len(fast) * 2 // 3],
        "mp4-index-only.mp4": fast[: fast.index(b"mdat") + 4],
        "mp4-no-frames.mp4": make(replace(MP4, frames=0, sound=None)),
        "mp4-audio-only.mp4": make(replace(MP4, codec=None)),
        "mp4-says-16000.mp4": _claims_size(sound, 16_000),
        "mp4-says-65535.mp4": _claims_size(sound, 65_535),
        "mp4-says-0.mp4": _claims_size(sound, 0),
        "mp4-10-hours.mp4": put(
            put(sound, (b"moov", b"mvhd"), 16, word(36_000_000)), (*mdia, b"mdhd"), 16, word(2**31)
        ),
        "mp4-timescale-0.mp4": put(sound, (*mdia, b"mdhd"), 12, word(0)),
        "mp4-timescale-huge.mp4": put(sound, (*mdia, b"mdhd"), 12, word(2**32 - 1)),
        "mp4-2-frames-10-hours-apart.mp4": make(
            replace(MP4, frames=2, pts=[0, 900_000], sound=None)
        ),
        "mp4-4-billion-frames.mp4": put(sound, (*STBL, b"stts"), 8, word(2**32 - 1)),
        "mp4-frames-take-no-time.mp4": put(sound, (*STBL, b"stts"), 12, word(0)),
        "mp4-frames-take-for-ever.mp4": put(sound, (*STBL, b"stts"), 12, word(2**32 - 1)),
        "mp4-time-table-huge.mp4": put(sound, (*STBL, b"stts"), 4, word(2**32 - 1)),
        "mp4-size-table-huge.mp4": put(sound, (*STBL, b"stsz"), 8, word(2**32 - 1)),
        "mp4-samples-of-4-gb.mp4": put(sound, (*STBL, b"stsz"), 12, word(2**32 - 1)),
        "mp4-million-samples.mp4": _million_samples(sound),
        "mp4-chunk-table-huge.mp4": put(sound, (*STBL, b"stsc"), 4, word(2**32 - 1)),
        "mp4-chunk-of-4-billion.mp4": put(sound, (*STBL, b"stsc"), 12, word(2**32 - 1)),
        "mp4-samples-outside.mp4": put(sound, (*STBL, b"stco"), 8, word(2**32 - 1)),
        "mp4-samples-in-index.mp4": put(sound, (*STBL, b"stco"), 8, word(len(sound) - 100)),
        "mp4-edit-list-huge.mp4": put(sound, (*trak, b"edts", b"elst"), 4, word(2**32 - 1)),
        "mp4-edit-starts-late.mp4": put(sound, (*trak, b"edts", b"elst"), 12, word(2**31 - 1)),
        "mp4-edit-starts-before.mp4": put(sound, (*trak, b"edts", b"elst"), 12, word(2**32 - 5)),
        "mp4-box-of-0-bytes.mp4": sound + struct.pack(">I4s", 0, b"free"),
        "mp4-first-box-of-0-bytes.mp4": struct.pack(">I4s", 0, b"ftyp") + sound,
        "mp4-box-of-1-byte.mp4": sound[:32] + struct.pack(">I4s", 2, b"free") + sound[32:],
        "mp4-box-of-2-to-the-63.mp4": sound[:32]
        + struct.pack(">I4sQ", 1, b"free", 2**63 - 1)
        + sound[32:],
        "mp4-nested-10000-deep.mp4": nested(10_000),
        "mp4-nested-500000-deep.mp4": nested(500_000),
        "mp4-1000-indices.mp4": sound + box(b"moov") * 1000,
        "mp4-10000-tracks.mp4": box(b"ftyp", b"isom", word(0))
        + box(b"moov", box(b"trak") * 10_000),
        "mp4-compressed-index.mov": compressed_index(),
        "mp4-huge-metadata.mp4": make(replace(MP4, metadata=(("comment", "x" * 20_000_000),))),
        "mp4-track-is-its-own-chapter.mp4": rewrite(
            sound, trak, lambda old: old + box(b"tref", box(b"chap", word(1)))
        ),
        "mp4-fragments-that-index-themselves.mp4": _looping_fragments(),
        "mp4-variable-rate.mp4": make(replace(MP4, frames=6, pts=[0, 1, 5, 6, 40, 41], sound=None)),
        "mp4-negative-times.mp4": make(replace(MP4, frames=4, pts=[-50, -25, 0, 25], sound=None)),
    }


def _claims_size(data: bytes, side: int) -> bytes:
    """The sample entry and the track header name another frame size than the stream holds."""
    entry = data.index(b"avc1", data.index(b"stsd"))
    claimed = bytearray(data)
    struct.pack_into(">HH", claimed, entry + 4 + 24, side, side)
    size = struct.pack(">II", side << 16 & 0xFFFFFFFF, side << 16 & 0xFFFFFFFF)
    return put(bytes(claimed), (b"moov", b"trak", b"tkhd"), 76, size)


def _million_samples(data: bytes) -> bytes:
    """A table of a million one-byte samples in one chunk, all inside a megabyte of padding."""
    count = 1_000_000
    start = len(data) + 8
    padded = data + box(b"mdat", bytes(count))
    for name, content in {
        b"stts": full(1, count, 512),
        b"stsz": full(1, count),
        b"stsc": full(1, 1, count, 1),
        b"stco": full(1, start),
    }.items():
        padded = rewrite(padded, (*STBL, name), lambda _, content=content: content)
    return padded


def _looping_fragments() -> bytes:
    """A fragmented file whose segment index points at the index itself."""
    flags = (("movflags", "frag_keyframe+empty_moov+default_base_moof"),)
    data = make(replace(MP4, sound=None, container_options=flags))
    first = data.index(b"moof") - 4
    # References 100 segments of 0 bytes, each again of type "index".
    references = struct.pack(">III", 1 << 31, 1, 0) * 100
    index = box(b"sidx", full(1, 1000, 0, 0), struct.pack(">HH", 0, 100), references)
    return data[:first] + index + data[first:]


def exotic() -> dict[str, bytes]:
    """Honest clips in codecs that are not on the list."""
    recipes = {
        "magicyuv.avi": Recipe(container="avi", codec="magicyuv", pixel_format="gbrp"),
        "magicyuv.mov": Recipe(container="mov", codec="magicyuv", pixel_format="gbrp"),
        "ffv1.mkv": Recipe(container="matroska", codec="ffv1"),
        "huffyuv.avi": Recipe(container="avi", codec="huffyuv", pixel_format="yuv422p"),
        "ffvhuff.avi": Recipe(container="avi", codec="ffvhuff"),
        "utvideo.avi": Recipe(container="avi", codec="utvideo"),
        "png.mov": Recipe(container="mov", codec="png", pixel_format="rgb24"),
        "prores.mov": Recipe(container="mov", codec="prores", pixel_format="yuv422p10le"),
        "cinepak.avi": Recipe(container="avi", codec="cinepak", pixel_format="rgb24"),
        "rawvideo.avi": Recipe(container="avi", codec="rawvideo"),
        "jpeg2000.mov": Recipe(container="mov", codec="jpeg2000", pixel_format="rgb24"),
        "snow.avi": Recipe(container="avi", codec="snow"),
        "qtrle.mov": Recipe(container="mov", codec="qtrle", pixel_format="rgb24"),
        "zmbv.avi": Recipe(container="avi", codec="zmbv", pixel_format="bgr0"),
        "svq1.mov": Recipe(container="mov", codec="svq1", pixel_format="yuv410p"),
        "cfhd.mov": Recipe(container="mov", codec="cfhd", pixel_format="yuv422p10le"),
        "msmpeg4.avi": Recipe(container="avi", codec="msmpeg4"),
        "wmv2.avi": Recipe(container="avi", codec="wmv2"),
        "flashsv.avi": Recipe(container="avi", codec="flashsv", pixel_format="bgr24"),
        "v210.mov": Recipe(container="mov", codec="v210", pixel_format="yuv422p10le"),
    }
    return {f"codec-{name}": make(recipe) for name, recipe in recipes.items()}
