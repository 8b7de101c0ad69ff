"""Tasks by path: values for what works and what does not, no trust in what comes back."""

import json
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenes.ball import read_index
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.failure import Failure, FailureReason
from unreel.media import reader as reader_module
from unreel.media.decode import decode_frames
from unreel.media.messages import MAX_PIXELS, OnPart, TaskReplyPayload
from unreel.media.picture import encode_jpeg
from unreel.media.reader import MediaReader, SampledFrames, run_trusted_task
from unreel.media.render import NormalisedClipFormat
from unreel.media.timeline import read_frame_timeline

FORM = NormalisedClipFormat(width=96, height=64, rate=Fraction(8))
READER = MediaReader(run_trusted_task)


@pytest.fixture
def clip(make, tmp_path: Path) -> Path:
    path = tmp_path / "clip.mp4"
    path.write_bytes(make(rate=Fraction(30000, 1001), tone_hz=440).getvalue())
    return path


def test_frames_come_as_jpeg_at_exact_instants(clip) -> None:
    taken = READER.frames(clip, sampling="uniform-4")
    assert isinstance(taken, SampledFrames)
    assert (taken.sampling, taken.n_clip_frames) == ("uniform-4", 48)
    assert [frame.index for frame in taken.frames] == [6, 18, 30, 42]
    assert [frame.at_s for frame in taken.frames] == [
        Fraction(1001 * i, 30000) for i in (6, 18, 30, 42)
    ]
    assert [read_index(frame.rgb()) for frame in taken.frames] == [6, 18, 30, 42]
    assert all(frame.data.startswith(b"\xff\xd8") for frame in taken.frames)


def test_plain_pixels_are_those_of_the_decoder(clip) -> None:
    taken = READER.frames(clip, sampling="paper-8", encoding="rgb24")
    assert isinstance(taken, SampledFrames)
    with clip.open("rb") as file:
        timeline = read_frame_timeline(file, max_pixels=MAX_PIXELS)
        indices = [frame.index for frame in taken.frames]
        ours = list(decode_frames(file, timeline, indices=indices, max_pixels=MAX_PIXELS))
    for frame, own in zip(taken.frames, ours, strict=True):
        assert np.array_equal(frame.rgb(), own.rgb)


def reason(outcome: object) -> FailureReason:
    assert isinstance(outcome, Failure)
    return outcome.reason


def test_what_is_no_regular_file_is_a_failure_and_never_waits(tmp_path) -> None:
    pipe = tmp_path / "pipe.mp4"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, tmp_path / "missing.mp4", Path("/dev/zero")):
        assert reason(READER.probe(path)) is FailureReason.NOT_A_FILE


def test_a_broken_clip_is_a_failure_of_every_method(tmp_path) -> None:
    path = tmp_path / "broken.mp4"
    path.write_bytes(b"nothing of a clip")
    outcomes = [
        READER.probe(path),
        READER.frames(path, sampling="uniform-8"),
        READER.sound(path),
        READER.normalise(path, FORM),
    ]
    assert [reason(outcome) for outcome in outcomes] == [FailureReason.FORMAT_REFUSED] * 4


def test_the_cap_on_pixels_is_the_readers(clip) -> None:
    small = MediaReader(run_trusted_task, max_pixels=1000)
    assert reason(small.probe(clip)) is FailureReason.TOO_MANY_PIXELS
    assert reason(small.frames(clip, sampling="uniform-8")) is FailureReason.TOO_MANY_PIXELS


def test_frames_that_fill_the_memory_are_a_failure(clip, monkeypatch) -> None:
    monkeypatch.setattr(reader_module, "MAX_FRAMES_BYTES", 200_000)
    outcome = READER.frames(clip, sampling="uniform-8", encoding="rgb24")
    assert reason(outcome) is FailureReason.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("task", "request_"),
    [
        ("probe", {"speed": 3}),
        ("probe", {"max_pixels": "9"}),
        ("frames", {}),
        ("frames", {"sampling": "uniform-8", "encoding": "jpeg"}),
        ("frames", {"sampling": "uniform-8", "longest_side": 0}),
        ("frames", {"sampling": "uniform-0"}),
        ("normalise", {"form": {"width": 97}}),
        ("normalise", {"form": {"rate": "fast"}}),
    ],
)
def test_a_wrong_request_is_the_callers_error(clip, task, request_) -> None:
    with pytest.raises(InvalidSettingError):
        run_trusted_task(task, clip, request_)


def test_unknown_names_list_the_known_ones(clip) -> None:
    with pytest.raises(UnknownNameError, match="normalise"):
        run_trusted_task("transcribe", clip, {})
    with pytest.raises(UnknownNameError, match="uniform-N"):
        READER.frames(clip, sampling="all")


class Liar:
    """A runner that hands back one payload, whatever is asked."""

    def __init__(self, payload: TaskReplyPayload, parts: Sequence[TaskReplyPayload] = ()) -> None:
        self._payload, self._parts = payload, parts

    def __call__(
        self, task: str, path: Path, request: Mapping[str, Any], on_part: OnPart | None = None
    ) -> TaskReplyPayload | Failure:
        for part in self._parts:
            assert on_part is not None
            on_part(part)
        return self._payload


def honest(task: str, clip: Path, **request: Any) -> TaskReplyPayload:
    payload = run_trusted_task(task, clip, request)
    assert isinstance(payload, TaskReplyPayload)
    return TaskReplyPayload(json.loads(json.dumps(payload.header)), payload.blobs)


def honest_frames(clip: Path, sampling: str) -> tuple[TaskReplyPayload, list[TaskReplyPayload]]:
    parts: list[TaskReplyPayload] = []
    payload = run_trusted_task("frames", clip, {"sampling": sampling}, parts.append)
    assert isinstance(payload, TaskReplyPayload)
    return payload, parts


def lie(payload: TaskReplyPayload, change: Any) -> MediaReader:
    change(payload.header)
    return MediaReader(Liar(payload))


FACT_LIES = {
    "negative width": lambda h: h["facts"]["video"].update(width=-1),
    "width as text": lambda h: h["facts"]["video"].update(width="192"),
    "giant exponent": lambda h: h["facts"]["video"].update(average_rate="1e999999999"),
    "rate of zero": lambda h: h["facts"]["video"].update(average_rate="0/1"),
    "division by zero": lambda h: h["facts"]["video"].update(duration_s="1/0"),
    "odd turn": lambda h: h["facts"]["video"].update(rotation_deg=45),
    "no frames": lambda h: h["facts"]["video"].update(n_frames=0),
    "long codec": lambda h: h["facts"]["video"].update(codec="h" * 1000),
    "markup": lambda h: h["facts"].update(container="<b>"),
    "extra field": lambda h: h["facts"].update(extra=1),
    "missing field": lambda h: h["facts"].pop("size_bytes"),
    "no facts": lambda h: h.clear(),
    "sound as object": lambda h: h["facts"].update(audio={}),
    "another size": lambda h: h["facts"].update(size_bytes=1),
    "size as a number with a point": lambda h: h["facts"].update(size_bytes=1.0),
    "a turn that is no number": lambda h: h["facts"]["video"].update(rotation_deg=True),
    "rate beyond all cameras": lambda h: h["facts"]["video"].update(average_rate="1000001/1"),
    "rate that never comes": lambda h: h["facts"]["video"].update(average_rate="1/9999999999"),
    "length beyond history": lambda h: h["facts"]["video"].update(duration_s="99999999999/1"),
    "length of 10^40": lambda h: h["facts"]["video"].update(duration_s="1" + 40 * "0" + "/1"),
    "length below zero": lambda h: h["facts"]["video"].update(duration_s="-1/1"),
    "begins before history": lambda h: h["facts"]["video"].update(first_at_s="-99999999999/1"),
    "begins at a tiny fraction": lambda h: h["facts"]["video"].update(first_at_s="1/1" + 40 * "0"),
    "digits of another script": lambda h: h["facts"]["video"].update(duration_s="\u0661/1"),
    "more frames than packets": lambda h: h["facts"]["video"].update(n_frames=1 << 40),
    "sound of 2^63 Hz": lambda h: h["facts"]["audio"][0].update(sample_rate_hz=1 << 63),
    "sound of endless length": lambda h: h["facts"]["audio"][0].update(duration_s="1e400"),
    "sound below zero": lambda h: h["facts"]["audio"][0].update(duration_s="-1/2"),
    "65 tags": lambda h: h["facts"].update(tags=[{"name": "a", "value": ""}] * 65),
    "tag with an escape": lambda h: h["facts"]["tags"][0].update(value="\x1b[2J"),
}


@pytest.mark.parametrize("change", FACT_LIES.values(), ids=FACT_LIES.keys())
def test_false_facts_are_a_failure(clip, change) -> None:
    outcome = lie(honest("probe", clip), change).probe(clip)
    assert reason(outcome) is FailureReason.WORKER_DIED


FRAME_LIES = {
    "index beyond the clip": lambda parts: parts[-1].header.update(index=48),
    "index twice": lambda parts: parts[1].header.update(index=parts[0].header["index"]),
    "index of 2^63": lambda parts: parts[-1].header.update(index=1 << 63),
    "time runs back": lambda parts: parts[1].header.update(at_s="-1/1"),
    "time beyond history": lambda parts: parts[-1].header.update(at_s="99999999999/1"),
    "time is not a number": lambda parts: parts[-1].header.update(at_s="nan"),
    "size does not fit": lambda parts: parts[0].header.update(width=193),
    "huge": lambda parts: parts[0].header.update(width=60_000, height=60_000),
    "longer than requested": lambda parts: parts[0].header.update(width=24_576, height=1),
    "another field": lambda parts: parts[0].header.update(jpeg="x"),
    "one frame less": lambda parts: parts.pop(),
    "no frame": lambda parts: parts.clear(),
    "one frame more": lambda parts: parts.append(
        TaskReplyPayload(parts[-1].header | {"index": 47}, parts[-1].blobs)
    ),
    "no pixels": lambda parts: parts.append(TaskReplyPayload(parts.pop().header)),
    "pixels twice": lambda parts: parts.append(
        TaskReplyPayload(parts[-1].header | {"index": 47}, 2 * parts.pop().blobs)
    ),
    "a JPEG": lambda parts: parts.append(
        TaskReplyPayload(parts.pop().header, (encode_jpeg(np.zeros((128, 192, 3), np.uint8)),))
    ),
}


@pytest.mark.parametrize("encoding", ["jpeg", "rgb24"])
@pytest.mark.parametrize("change", FRAME_LIES.values(), ids=FRAME_LIES.keys())
def test_false_frames_are_a_failure(clip, change, encoding) -> None:
    payload, parts = honest_frames(clip, "uniform-3")
    change(parts)
    reader = MediaReader(Liar(payload, parts))
    outcome = reader.frames(clip, sampling="uniform-3", encoding=encoding, longest_side=1000)
    assert reason(outcome) is FailureReason.WORKER_DIED


@pytest.mark.parametrize(
    "change",
    [
        {"sampling": "uniform-2"},
        {"n_clip_frames": 3},
        {"n_clip_frames": 1 << 63},
        {"n_frames": 2},
        {"n_frames": -1},
        {"frames": []},
    ],
)
def test_a_false_end_of_the_frames_is_a_failure(clip, change) -> None:
    payload, parts = honest_frames(clip, "uniform-3")
    reader = MediaReader(Liar(TaskReplyPayload(payload.header | change), parts))
    assert reason(reader.frames(clip, sampling="uniform-3")) is FailureReason.WORKER_DIED


def test_what_a_reply_leads_to_is_the_failure_of_its_file(clip, monkeypatch) -> None:
    payload, parts = honest_frames(clip, "uniform-3")

    def fail(*_: object, **__: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr("unreel.media.picture.encode_jpeg", fail)
    outcome = MediaReader(Liar(payload, parts)).frames(clip, sampling="uniform-3")
    assert reason(outcome) is FailureReason.OUT_OF_MEMORY


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["sound"].update(n_samples=3),
        lambda h: h["sound"].update(rate_hz=8_000),
        lambda h: h["sound"].update(n_samples=1 << 39),
        lambda h: h["sound"].update(n_samples=0),
        lambda h: h["sound"].update(start_s="99999999999/1"),
        lambda h: h["sound"].update(start_s="-99999999999/1"),
        lambda h: h["sound"].update(start_s="1/0"),
        lambda h: h.update(sound=[]),
        lambda h: h.update(sound=None),
    ],
)
def test_false_sound_is_a_failure(clip, change) -> None:
    outcome = lie(honest("sound", clip), change).sound(clip)
    assert reason(outcome) is FailureReason.WORKER_DIED


def test_a_false_clip_is_a_failure(clip) -> None:
    for payload in (
        TaskReplyPayload({"size_bytes": 3}, (b"abcd",)),
        TaskReplyPayload({"size_bytes": 12}, (b"hello world!",)),
        TaskReplyPayload({"size_bytes": 0}),
    ):
        outcome = MediaReader(Liar(payload)).normalise(clip, FORM)
        assert reason(outcome) is FailureReason.WORKER_DIED
