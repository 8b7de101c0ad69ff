"""Matroska and WebM files that lie, built element by element."""

import io
import struct
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import av
from tiny_clips import MKV, WEBM, Recipe, make

UNKNOWN_SIZE = b"\x01" + b"\xff" * 7

EBML = b"\x1a\x45\xdf\xa3"
SEGMENT = b"\x18\x53\x80\x67"
INFO = b"\x15\x49\xa9\x66"
TRACKS = b"\x16\x54\xae\x6b"
CLUSTER = b"\x1f\x43\xb6\x75"
SEEK_HEAD = b"\x11\x4d\x9b\x74"
CUES = b"\x1c\x53\xbb\x6b"
TAGS = b"\x12\x54\xc3\x67"
CHAPTERS = b"\x10\x43\xa7\x70"
ATTACHMENTS = b"\x19\x41\xa4\x69"
SIMPLE_BLOCK = b"\xa3"
VOID = b"\xec"


def size_of(length: int) -> bytes:
    return struct.pack(">Q", length | 1 << 56)


def element(name: bytes, *content: bytes, size: bytes | None = None) -> bytes:
    data = b"".join(content)
    return name + (size or size_of(len(data))) + data


def number(name: bytes, value: int) -> bytes:
    return element(name, value.to_bytes(8, "big"))


def head(kind: bytes = b"matroska") -> bytes:
    return element(EBML, element(b"\x42\x82", kind), number(b"\x42\x87", 4), number(b"\x42\x85", 2))


def info(*extra: bytes, scale: int = 1_000_000, duration: float = 400.0) -> bytes:
    return element(
        INFO,
        number(b"\x2a\xd7\xb1", scale),
        element(b"\x44\x89", struct.pack(">d", duration)),
        *extra,
    )


def tracks(
    codec: bytes = b"V_VP8", *, width: int = 64, height: int = 48, private: bytes = b""
) -> bytes:
    entry = [
        number(b"\xd7", 1),
        number(b"\x73\xc5", 1),
        number(b"\x83", 1),
        element(b"\x86", codec),
        element(b"\xe0", number(b"\xb0", width), number(b"\xba", height)),
    ]
    if private:
        entry.append(element(b"\x63\xa2", private))
    return element(TRACKS, element(b"\xae", *entry))


def block(frame: bytes, *, at_ms: int, flags: int = 0x80) -> bytes:
    return element(SIMPLE_BLOCK, b"\x81", struct.pack(">hB", at_ms, flags), frame)


def cluster(frames: Iterable[bytes], *, at_ms: int = 0, step_ms: int = 40) -> bytes:
    blocks = [block(frame, at_ms=index * step_ms) for index, frame in enumerate(frames)]
    return element(CLUSTER, number(b"\xe7", at_ms), *blocks)


@cache
def vp8() -> tuple[bytes, ...]:
    """The frames of an honest VP8 clip, all key frames."""
    options = (("g", "1"),)
    data = make(Recipe(container="webm", codec="libvpx", codec_options=options))
    with av.open(io.BytesIO(data)) as container:
        return tuple(bytes(packet) for packet in container.demux(video=0) if packet.size)


def film(*extra: bytes, before: bytes = b"", video: bytes | None = None) -> bytes:
    """An honest film, with more top-level elements at its end or start."""
    content = (before, info(), video or tracks(), cluster(vp8()), *extra)
    return head() + element(SEGMENT, *content)


def _claimed_by_frame(side: int) -> bytes:
    """The key frame's own header says that it is `side` pixels wide and high."""
    first = bytearray(vp8()[0])
    struct.pack_into("<HH", first, 6, side, side)
    return head() + element(SEGMENT, info(), tracks(), cluster([bytes(first)]))


def _h264_of(macroblocks: int) -> bytes:
    """An H.264 parameter set that claims a square of `macroblocks` x 16 pixels, in a small track."""
    bits = "".join(
        [
            *map(_golomb, (0, 0, 2, 16)),
            "0",
            _golomb(macroblocks - 1),
            _golomb(macroblocks - 1),
            "1100",
        ]
    )
    parameters = b"\x67\x42\x00\x3e" + _packed(bits + "1")
    pictures = b"\x68" + _packed(
        "".join([_golomb(0), _golomb(0), "0", "0", *["1"] * 3, "00", *["1"] * 3, "000", "1"])
    )
    private = b"\x01\x42\x00\x3e\xff\xe1" + struct.pack(">H", len(parameters)) + parameters
    private += b"\x01" + struct.pack(">H", len(pictures)) + pictures
    picture = b"\x65" + _packed(
        "".join([_golomb(0), _golomb(7), _golomb(0), "0000", _golomb(0), "00", "1", "1"])
    )
    frame = struct.pack(">I", len(picture) + 64) + picture + bytes(64)
    video = tracks(b"V_MPEG4/ISO/AVC", private=private)
    return head() + element(SEGMENT, info(), video, cluster([frame] * 5))


def _golomb(value: int) -> str:
    binary = f"{value + 1:b}"
    return "0" * (len(binary) - 1) + binary


def _packed(bits: str) -> bytes:
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _nested_tags(depth: int) -> bytes:
    """Tags inside tags; each level is ten bytes of name and size."""
    levels = b"".join(b"\x67\xc8" + size_of(10 * left) for left in range(depth - 1, -1, -1))
    return film(element(TAGS, element(b"\x73\x73", levels)))


def _million_packets() -> bytes:
    """A million one-byte frames."""
    clusters = [
        element(
            CLUSTER,
            number(b"\xe7", start),
            b"".join(
                b"\xa3\x85\x81" + struct.pack(">hB", at, 0x80) + b"\0" for at in range(25_000)
            ),
        )
        for start in range(0, 1_000_000, 25_000)
    ]
    return head() + element(SEGMENT, info(), tracks(), cluster(vp8()[:1]), *clusters)


def _pointing_at(*targets: tuple[bytes, int]) -> bytes:
    entries = [
        element(b"\x4d\xbb", element(b"\x53\xab", name), number(b"\x53\xac", where))
        for name, where in targets
    ]
    return element(SEEK_HEAD, *entries)


def crafted() -> dict[str, bytes]:
    """Name to content."""
    sound, web = make(MKV), make(WEBM)
    uid = bytes(range(16))
    linked = info(
        element(b"\x73\xa4", uid),
        element(b"\x3c\xb9\x23", uid),
        element(b"\x3c\x83\xab", b"canary.ts"),
        element(b"\x3e\xb9\x23", uid),
        element(b"\x3e\x83\xbb", b"canary.ts"),
    )
    ordered = element(
        CHAPTERS,
        element(
            b"\x45\xb9",
            number(b"\x45\xdd", 1),
            element(b"\xb6", number(b"\x73\xc4", 1), number(b"\x91", 0), element(b"\x6e\x67", uid)),
        ),
    )
    font = element(
        ATTACHMENTS,
        element(
            b"\x61\xa7",
            element(b"\x46\x6e", b"../../canary.ts"),
            element(b"\x46\x60", b"application/x-executable"),
            element(b"\x46\x5c", b"\x7fELF" + bytes(1_000_000)),
            number(b"\x46\xae", 1),
        ),
    )
    return {
        "mkv-honest.mkv": film(),
        "mkv-first-bytes.mkv": sound[:20],
        "mkv-cut-in-tracks.mkv": sound[:400],
        "mkv-cut-in-half.mkv": sound[: len(sound) // 2],
        "webm-cut-in-half.webm": web[: len(web) // 2],
        "webm-without-last-byte.webm": web[:-1],
        "mkv-no-frames.mkv": head() + element(SEGMENT, info(), tracks()),
        "mkv-no-tracks.mkv": head() + element(SEGMENT, info()),
        "mkv-audio-only.mkv": make(replace(MKV, codec=None)),
        "mkv-subtitles-only.mkv": head()
        + element(
            SEGMENT,
            info(),
            element(
                TRACKS,
                element(
                    b"\xae",
                    number(b"\xd7", 1),
                    number(b"\x73\xc5", 1),
                    number(b"\x83", 17),
                    element(b"\x86", b"S_TEXT/UTF8"),
                ),
            ),
            cluster([b"hello"]),
        ),
        "mkv-says-16000.mkv": film(video=tracks(width=16_000, height=16_000)),
        "mkv-says-65535.mkv": film(video=tracks(width=65_535, height=65_535)),
        "mkv-says-2-to-the-63.mkv": film(video=tracks(width=2**63, height=2**63)),
        "mkv-frame-says-16383.mkv": _claimed_by_frame(16_383),
        "mkv-frame-says-5000.mkv": _claimed_by_frame(5_000),
        "mkv-h264-says-16000.mkv": _h264_of(1_000),
        "mkv-h264-says-4096.mkv": _h264_of(256),
        "mkv-10-hours.mkv": head()
        + element(
            SEGMENT,
            info(duration=36_000_000.0),
            tracks(),
            cluster(vp8()),
            cluster(vp8(), at_ms=35_999_000),
        ),
        "mkv-duration-nan.mkv": head()
        + element(SEGMENT, info(duration=float("nan")), tracks(), cluster(vp8())),
        "mkv-scale-0.mkv": head() + element(SEGMENT, info(scale=0), tracks(), cluster(vp8())),
        "mkv-scale-huge.mkv": head()
        + element(SEGMENT, info(scale=2**63 - 1), tracks(), cluster(vp8())),
        "mkv-time-overflows.mkv": head()
        + element(SEGMENT, info(), tracks(), cluster(vp8(), at_ms=2**63 - 100)),
        "mkv-time-runs-backwards.mkv": head()
        + element(SEGMENT, info(), tracks(), cluster(vp8(), at_ms=10_000, step_ms=-40)),
        "mkv-times-all-equal.mkv": head()
        + element(SEGMENT, info(), tracks(), cluster(vp8(), step_ms=0)),
        "mkv-negative-times.mkv": head()
        + element(SEGMENT, info(), tracks(), cluster(vp8(), step_ms=-40)),
        "mkv-points-at-itself.mkv": film(before=_pointing_at((SEEK_HEAD, 0), (CUES, 0), (TAGS, 0))),
        "mkv-points-outside.mkv": film(before=_pointing_at((CUES, 2**62), (TAGS, 2**62))),
        "mkv-segment-of-unknown-size.mkv": head()
        + element(SEGMENT, info(), tracks(), cluster(vp8()), size=UNKNOWN_SIZE),
        "mkv-segment-in-segment.mkv": head() + element(SEGMENT, info(), tracks(), film(), film()),
        "mkv-void-of-2-to-the-55.mkv": film(before=VOID + size_of(2**55)),
        "mkv-block-larger-than-file.mkv": film(SIMPLE_BLOCK + size_of(2**40)),
        "mkv-tags-nested.mkv": _nested_tags(200_000),
        "mkv-linked-segments.mkv": head()
        + element(SEGMENT, linked, tracks(), cluster(vp8()), ordered),
        "mkv-attachment.mkv": film(font),
        "mkv-million-packets.mkv": _million_packets(),
        "mkv-100000-tracks.mkv": head()
        + element(SEGMENT, info(), element(TRACKS, tracks()[12:] * 100_000), cluster(vp8())),
        "mkv-laced-blocks.mkv": head()
        + element(
            SEGMENT,
            info(),
            tracks(),
            element(
                CLUSTER,
                number(b"\xe7", 0),
                *[block(b"\xff" * 300, at_ms=0, flags=flags) for flags in (2, 4, 6)],
            ),
        ),
    }
