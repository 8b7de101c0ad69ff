"""Children that a file has taken over, and that lie in one field or one byte of one reply.

The real tasks, but for files that carry the name of a lie. Loaded by a zygote, and by the tests for the
names. Each lie names the task that tells it; on the other tasks the same file is read honestly.
"""

import os
import struct
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, NoReturn

from hostile_tasks import _framed
from lies import (
    HUGE,
    KIB,
    MIB,
    NEVER,
    Lie,
    Result,
    Told,
    drip,
    filled,
    flood,
    honest_then,
    in_blob,
    in_blobs,
    in_each,
    in_frames,
    in_header,
    in_last,
    in_parts,
    keep_parts,
    lying_task,
    part_of,
    raw,
    write,
)
from lying_manifests import MANIFEST_LIES

from unreel.media.messages import Parts, Task, TaskReplyPayload
from unreel.media.tasks import TASKS as HONEST


def _video(**fields: Any) -> Lie:
    return in_header(lambda header: header["facts"]["video"].update(fields))


def _facts(**fields: Any) -> Lie:
    return in_header(lambda header: header["facts"].update(fields))


def _sound(**fields: Any) -> Lie:
    return in_header(lambda header: header["sound"].update(fields))


def _keys() -> bytes:
    fields = ",".join(f'"k{number}":0' for number in range(20_000))
    return _framed(f'{{"header": {{"facts": {{{fields}}}}}, "blobs": []}}'.encode())


def _surrogate() -> bytes:
    return _framed(b'{"header": {"facts": "\\ud800"}, "blobs": []}')


def _dot(index: int) -> bytes:
    return part_of({"index": index, "at_s": f"{index}/1000", "width": 1, "height": 1}, b"\0\0\0")


def _many_dots() -> NoReturn:
    for index in range(10**9):
        write(_dot(index))
    os._exit(0)


PROGRESSIVE: Final = b"\xff\xd8\xff\xc2" + bytes(364_000)
_TEXT: Final = "\x1b]0;owned\x07\x1b[2J\u202e" + "x" * 200


def _probe_lies() -> Iterator[tuple[str, Lie]]:
    yield "rate-huge", _video(average_rate=HUGE)
    yield "rate-0", _video(average_rate="0/1")
    yield "rate-text", _video(average_rate="fast")
    yield "length-huge", _video(duration_s=HUGE)
    yield "length-negative", _video(duration_s="-1/24")
    yield "start-huge", _video(first_at_s=HUGE)
    yield "frames-2-63", _video(n_frames=1 << 63)
    yield "width-2-63", _video(width=1 << 63)
    yield "width-float", _video(width=192.0)
    yield "turn-45", _video(rotation_deg=45)
    yield "codec-escape", _video(codec="\x1b[2J")
    yield "size-2-63", _facts(size_bytes=1 << 63)
    yield "audio-many", _facts(audio=[{}] * 3_000)
    yield "audio-channels", _facts(audio=[_audio(channels=-1)])
    yield "tags-many", _facts(tags=[{"name": "a", "value": "b"}] * 3_000)
    yield "tag-escape", _facts(tags=[{"name": "encoder", "value": _TEXT}])
    yield "facts-missing", in_header(lambda header: header["facts"].pop("video"))
    yield "facts-with-blob", in_blobs(lambda blobs: blobs.append(bytes(200 * MIB)))
    yield "facts-in-parts", in_parts


def _audio(**fields: Any) -> dict[str, Any]:
    return {"codec": "aac", "sample_rate_hz": 48_000, "channels": 1, "duration_s": "1/1"} | fields


def _quiet_lies() -> Iterator[tuple[str, Lie]]:
    yield "late-start", _video(first_at_s=NEVER)
    yield "endless", _video(duration_s=NEVER)
    yield "a-million-a-second", _video(average_rate="1000000/1")
    yield "thin", _video(width=65_500, height=1)
    yield "unplayable", _facts(container="avi")


def _frames_lies() -> Iterator[tuple[str, Lie]]:
    yield "index-twice", in_each(index=0)
    yield "index-2-63", in_last(index=1 << 63)
    yield "index-behind", in_last(index=1_000)
    yield "time-huge", in_last(at_s=HUGE)
    yield "frame-wide", in_last(width=65_500)
    yield "frame-huge", in_last(width=1 << 40, height=1 << 40)
    yield (
        "pixels-missing",
        in_frames(lambda parts: parts.append(TaskReplyPayload(parts.pop().header))),
    )
    yield (
        "pixels-twice",
        in_frames(lambda p: p.append(TaskReplyPayload(p[-1].header, 2 * p.pop().blobs))),
    )
    yield (
        "jpeg",
        in_frames(lambda parts: parts.append(TaskReplyPayload(parts.pop().header, (PROGRESSIVE,)))),
    )
    yield "no-frames", in_frames(lambda parts: parts.clear())
    yield "frames-end-2-63", in_header(lambda header: header.update(n_clip_frames=1 << 63))
    yield "frames-other-plan", in_header(lambda header: header.update(sampling="uniform-64"))
    yield "frames-never-end", raw(then=_many_dots)
    yield "frames-then-nonsense", raw(_dot(0), b"UNRL")
    yield "parts-of-nothing", raw(then=partial(flood, part_of({})))
    yield "parts-full", raw(then=partial(flood, part_of({"a": "x" * 200_000}, bytes(MIB))))


def _quiet_frames_lies() -> Iterator[tuple[str, Lie]]:
    yield "frames-at-once", in_each(at_s="0/1")
    yield "frames-at-the-end", in_each(at_s=NEVER)
    yield "frames-after", _raw_after


def _raw_after(result: Result) -> Parts:
    """The honest frames and their end, with more frames behind it."""
    assert not isinstance(result, TaskReplyPayload)
    kept: list[TaskReplyPayload] = []
    last = yield from keep_parts(result, kept)
    yield from kept
    write(_framed({"header": last.header, "blobs": []}), *(_dot(n) for n in range(100)))
    os._exit(0)


def _raw_lies() -> Iterator[tuple[str, Lie]]:
    yield "header-4-gb", raw(_framed(b"", length=2**32 - 1), then=partial(flood, b"[" * MIB))
    yield "header-deep", raw(filled(b"", b"[", b""))
    yield "header-text", raw(filled(b'{"header": {"facts": "', b"x", b'"}, "blobs": []}'))
    yield "header-keys", raw(_keys())
    yield "header-nan", raw(_framed(b'{"header": {"facts": NaN}, "blobs": []}'))
    yield "header-surrogate", raw(_surrogate())
    yield "header-half", raw(_framed(b'{"header": ', length=1_000))
    yield "header-dripping", raw(_framed(b"", length=KIB), then=drip)
    yield "blob-announced", raw(_framed({"header": {}, "blobs": [263 * MIB]}))
    yield "blobs-263-mb", raw(_framed({"header": {}, "blobs": [263 * MIB]}), bytes(263 * MIB))
    yield "blobs-100-000", raw(_framed({"header": {}, "blobs": [0] * 80_000}))
    yield "reason-of-a-server", raw(_framed(_failure("rate-limited", "again")))
    yield "detail-long", raw(_framed(_failure("undecodable", "\x1b" * 40_000)))
    yield "silence", raw()


def _failure(reason: object, detail: object) -> dict[str, Any]:
    return {"failure": {"reason": reason, "detail": detail}}


def _scan_lies() -> Iterator[tuple[str, Lie]]:
    top = struct.pack("<q", (1 << 63) - 1)
    yield "scan-tick-top", in_blob(0, lambda ticks: ticks[:-8] + top)
    yield "scan-nan", in_blob(2, lambda levels: struct.pack("<f", float("nan")) + levels[4:])
    yield "scan-short", in_blob(1, lambda histograms: histograms[:-1])
    yield "scan-picture", in_blob(5, lambda _: PROGRESSIVE)
    yield "scan-64-blobs", in_blobs(lambda blobs: blobs.extend([b""] * (64 - len(blobs))))
    yield "scan-base", in_header(lambda header: header.update(time_base=HUGE))
    yield "scan-ticks", in_header(lambda header: header.update(last_ticks=1 << 63))
    yield "scan-picked", in_header(lambda header: header.update(picked=header["picked"] * 100))
    yield "scan-sharp", in_header(lambda header: header["picked"][0].update(sharpness=1e308))


def _sound_lies() -> Iterator[tuple[str, Lie]]:
    yield "sound-samples", _sound(n_samples=1 << 63)
    yield "sound-rate", _sound(rate_hz=8_000)
    yield "sound-start", _sound(start_s=HUGE)
    yield "sound-odd", in_blob(0, lambda samples: samples[:-1])


def _clip_lies() -> Iterator[tuple[str, Lie]]:
    yield "copy-no-mp4", in_blob(0, lambda data: b"GIF89a" + data[6:])
    yield "copy-size", in_header(lambda header: header.update(size_bytes=1 << 63))


def _instants_lies() -> Iterator[tuple[str, Lie]]:
    yield "instants-twice", in_each(index=0)
    yield "instants-wide", in_last(width=65_500)
    yield "instants-plan", in_header(lambda header: header.update(sampling="uniform-4"))


def _annotated_lies() -> Iterator[tuple[str, Lie]]:
    yield (
        "film-no-mp4",
        in_frames(lambda p: p.append(TaskReplyPayload(p.pop(0).header, (b"GIF89a" * 9,)))),
    )
    yield "film-hole", in_last(at=1 << 40)
    yield "film-over-its-start", in_last(at=4)
    yield (
        "film-two-blobs",
        in_frames(lambda p: p.append(TaskReplyPayload(p[-1].header, 2 * p.pop().blobs))),
    )
    yield "film-size-2-63", in_header(lambda header: header.update(size_bytes=1 << 63))
    yield "film-never-ends", raw(then=partial(flood, part_of({"at": 0, "n_frames": 1}, _FILM)))
    yield (
        "film-then-sleep",
        raw(part_of({"at": 0, "n_frames": 1}, _FILM), then=partial(time.sleep, 600)),
    )


_FILM: Final = b"\0\0\0\x18ftypisom" + bytes(MIB)

LIES: Final[Mapping[str, Told]] = (
    {name: Told("probe", lie) for name, lie in (*_probe_lies(), *_raw_lies())}
    | {name: Told("probe", lie, quiet=True) for name, lie in _quiet_lies()}
    | {"trailing": Told("probe", honest_then(bytes(100_000)), quiet=True)}
    | {name: Told("frames", lie) for name, lie in _frames_lies()}
    | {name: Told("frames", lie, quiet=True) for name, lie in _quiet_frames_lies()}
    | {name: Told("scan", lie) for name, lie in _scan_lies()}
    | {name: Told("sound", lie) for name, lie in _sound_lies()}
    | {name: Told("normalise", lie) for name, lie in _clip_lies()}
    | {name.replace("copy", "cut"): Told("render", lie) for name, lie in _clip_lies()}
    | {name: Told("instants", lie) for name, lie in _instants_lies()}
    | {name: Told("annotate", lie) for name, lie in _annotated_lies()}
    | MANIFEST_LIES
)


TASKS: Final[Mapping[str, Task]] = {
    task: lying_task(task, honest, LIES) for task, honest in HONEST.items()
}
