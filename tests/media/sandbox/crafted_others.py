"""GIF, AVI and transport streams that lie, and files that are no video at all."""

import gzip
import io
import struct
import zipfile
from dataclasses import replace

from PIL import Image
from tiny_clips import AVI, GIF, MP4, TS, Recipe, make

_ONE_PIXEL = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
_DELAY = b"\x21\xf9\x04\x00\x04\x00\x00\x00"


def gif(width: int, height: int, *, frames: int = 1, whole: bool = False) -> bytes:
    """Frames of one pixel, or of `whole` size with too little data, on a canvas of any size."""
    image = bytearray(_DELAY + _ONE_PIXEL)
    if whole:
        struct.pack_into("<HH", image, len(_DELAY) + 5, width, height)
    screen = struct.pack("<HHBBB", width, height, 0x80, 0, 0)
    return b"GIF89a" + screen + b"\0\0\0\xff\xff\xff" + bytes(image) * frames + b"\x3b"


def _gif_with_bad_codes() -> bytes:
    """LZW codes that refer to entries which do not exist, for ever."""
    image = b"\x2c" + struct.pack("<HHHHB", 0, 0, 500, 500, 0) + b"\x0b"
    blocks = (b"\xff" + b"\xff" * 255) * 400
    return b"GIF89a" + struct.pack("<HHBBB", 500, 500, 0x80, 0, 0) + bytes(6) + image + blocks


def _avi_with_playlist(playlist: bytes) -> bytes:
    """A subtitle stream whose text is a playlist: it once made players fetch what it names."""
    text = b"GAB2\0" + struct.pack("<HIHHI", 2, 2, 0, 4, len(playlist)) + b"\0\0" + playlist
    chunk = b"00tx" + struct.pack("<I", len(text)) + text + bytes(len(text) % 2)
    header = b"txts" + bytes(4) + bytes(48)
    stream = _list(b"strl", _chunk(b"strh", header), _chunk(b"strf", b""))
    main = struct.pack("<14I", 40_000, 0, 0, 0x10, 1, 0, 1, 0, 64, 48, 0, 0, 0, 0)
    body = _list(b"hdrl", _chunk(b"avih", main), stream) + _list(b"movi", chunk)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"AVI " + body


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


def _list(name: bytes, *content: bytes) -> bytes:
    return _chunk(b"LIST", name + b"".join(content))


def _claimed_by_jpeg(side: int) -> bytes:
    """Motion JPEG whose pictures claim another size than the container."""
    data = bytearray(make(Recipe(container="avi", codec="mjpeg", pixel_format="yuvj420p")))
    at = data.find(b"\xff\xc0")
    while at >= 0:
        struct.pack_into(">HH", data, at + 5, side, side)
        at = data.find(b"\xff\xc0", at + 2)
    return bytes(data)


def _claimed_by_vp9(side: int) -> bytes:
    """A VP9 key frame that claims another size than its track."""
    from crafted_matroska import SEGMENT, cluster, element, head, info, tracks, vp8

    start = "10" + "00" + "0" + "0" + "1" + "0"
    sync = f"{0x498342:024b}"
    bits = start + sync + "0010" + f"{side - 1:016b}" * 2 + "0" * 64
    bits += "0" * (-len(bits) % 8)
    frame = int(bits, 2).to_bytes(len(bits) // 8, "big") + vp8()[0]
    return head(b"webm") + element(SEGMENT, info(), tracks(b"V_VP9"), cluster([frame] * 5))


def _picture(kind: str) -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (64, 48)).save(target, kind)
    return target.getvalue()


def _zip_bomb() -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("clip.mp4", bytes(100 * 1024**2))
    return target.getvalue()


def _ts_with_new_size() -> bytes:
    """A transport stream that changes its frame size on the way."""
    large = replace(TS, width=1920, height=1088, frames=5, sound=None)
    return make(replace(TS, sound=None)) + make(large) + make(replace(TS, sound=None))


def crafted(playlist: bytes) -> dict[str, bytes]:
    """Name to content; `playlist` is hidden in one of them."""
    ts, animation, avi = make(TS), make(GIF), make(AVI)
    return {
        "gif-16000.gif": gif(16_000, 16_000),
        "gif-16000-whole.gif": gif(16_000, 16_000, whole=True),
        "gif-65535.gif": gif(65_535, 65_535),
        "gif-65535-whole.gif": gif(65_535, 65_535, whole=True),
        "gif-5000-x-5000-frames-1000.gif": gif(5_000, 5_000, frames=1_000),
        "gif-0.gif": gif(0, 0),
        "gif-frame-outside.gif": gif(1, 1, whole=False).replace(
            struct.pack("<HHHH", 0, 0, 1, 1), struct.pack("<HHHH", 65_535, 65_535, 65_535, 65_535)
        ),
        "gif-100000-frames.gif": gif(1, 1, frames=100_000),
        "gif-no-frames.gif": gif(16, 16, frames=0),
        "gif-bad-codes.gif": _gif_with_bad_codes(),
        "gif-cut.gif": animation[: len(animation) // 2],
        "gif-header-only.gif": animation[:10],
        "ts-cut.ts": ts[: len(ts) // 2 + 100],
        "ts-audio-only.ts": make(replace(TS, codec=None)),
        "ts-new-size.ts": _ts_with_new_size(),
        "ts-empty-packets.ts": (b"G\x1f\xff\x10" + b"\xff" * 184) * 50_000,
        "ts-tables-only.ts": ts[: 188 * 3],
        "avi-cut.avi": avi[: len(avi) // 2],
        "avi-index-lies.avi": avi.replace(b"idx1", b"idx1", 1)[:-100] + b"\xff" * 100,
        "avi-playlist-as-subtitle.avi": _avi_with_playlist(playlist),
        "avi-jpeg-says-65500.avi": _claimed_by_jpeg(65_500),
        "avi-jpeg-says-5500.avi": _claimed_by_jpeg(5_500),
        "webm-vp9-says-65536.webm": _claimed_by_vp9(65_536),
        "webm-vp9-says-5000.webm": _claimed_by_vp9(5_000),
        "none-empty.mp4": b"",
        "none-zeros.mp4": bytes(1_000_000),
        "none-text.mp4": b"I am a video, trust me.\n" * 1000,
        "none-html.mp4": b"<!doctype html><video src=clip.mp4></video>",
        "none-program.mp4": b"\x7fELF\x02\x01\x01" + bytes(10_000),
        "none-gzip-bomb.mp4": gzip.compress(bytes(100 * 1024**2)),
        "none-zip-bomb.mp4": _zip_bomb(),
        "none-jpeg.mp4": _picture("JPEG"),
        "none-png.mp4": _picture("PNG"),
        "none-webp.mp4": _picture("WEBP"),
        "none-wave.mp4": make(Recipe(container="wav", codec=None, sound="pcm_s16le")),
        "none-mp3.mp4": make(Recipe(container="mp3", codec=None, sound="libmp3lame")),
        "none-flv.mp4": make(Recipe(container="flv", codec="flv")),
        "none-asf.mp4": make(Recipe(container="asf", codec="wmv2")),
        "none-nut.mp4": make(Recipe(container="nut", codec="mpeg4")),
        "none-ogg.mp4": make(Recipe(container="ogg", codec="libvpx")),
        "none-subtitles.mp4": b"1\n00:00:00,000 --> 00:00:01,000\nhello\n",
        "size-7680-x-4320.mp4": make(_ultra(7680, 4320)),
        "size-8192-x-8192.mp4": make(_ultra(8192, 8192)),
    }


def _ultra(width: int, height: int) -> Recipe:
    """Honest, but large; H.264 keeps several such frames at once."""
    return replace(
        MP4,
        width=width,
        height=height,
        frames=2,
        plain=True,
        sound=None,
        codec_options=(("preset", "ultrafast"),),
    )
