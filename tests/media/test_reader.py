"""Tasks by path: values for what works and what does not, no trust in what comes back."""

import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.facts import ClipFacts
from unreel.core.failure import Failure, FailureReason
from unreel.media import tasks as tasks_module
from unreel.media.container import MAX_PIXELS
from unreel.media.decode import decode_frames
from unreel.media.normalise import NormalForm, normalise
from unreel.media.payload import Payload
from unreel.media.probe import probe
from unreel.media.reader import MediaReader, SampledFrames, run_trusted
from unreel.media.scene import read_index
from unreel.media.sound import NoSound, Sound, read_sound
from unreel.media.tasks import TASKS
from unreel.media.timeline import read_timeline

FORM = NormalForm(width=96, height=64, rate=Fraction(8))
READER = MediaReader(run_trusted)


@pytest.fixture
def clip(make, tmp_path: Path) -> Path:
    path = tmp_path / "clip.mp4"
    path.write_bytes(make(rate=Fraction(30000, 1001), tone_hz=440).getvalue())
    return path


def test_facts_survive_the_journey(clip) -> None:
    facts = READER.probe(clip)
    with clip.open("rb") as file:
        assert facts == probe(file)
    assert isinstance(facts, ClipFacts)
    assert facts.video.average_rate == Fraction(30000, 1001)


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
        timeline = read_timeline(file, max_pixels=MAX_PIXELS)
        indices = [frame.index for frame in taken.frames]
        ours = list(decode_frames(file, timeline, indices=indices, max_pixels=MAX_PIXELS))
    for frame, own in zip(taken.frames, ours, strict=True):
        assert np.array_equal(frame.rgb(), own.rgb)


def test_frames_shrink_on_request(clip) -> None:
    taken = READER.frames(clip, sampling="uniform-1", encoding="rgb24", longest_side=96)
    assert isinstance(taken, SampledFrames)
    assert (taken.frames[0].width, taken.frames[0].height) == (96, 64)
    assert "96 x 64" in repr(taken.frames[0])


def test_sound_and_silence_are_values(clip, make, tmp_path) -> None:
    heard = READER.sound(clip)
    assert isinstance(heard, Sound)
    with clip.open("rb") as file:
        assert np.array_equal(heard.samples, read_sound(file).samples)
    mute = tmp_path / "mute.gif"
    mute.write_bytes(make(container="gif").getvalue())
    assert READER.sound(mute) == NoSound()


def test_a_clip_is_normalised_by_path(clip) -> None:
    with clip.open("rb") as file:
        assert READER.normalise(clip, FORM) == normalise(file, FORM)


def test_headers_are_plain_json(clip) -> None:
    requests: dict[str, dict[str, Any]] = {
        "probe": {},
        "frames": {"sampling": "uniform-2"},
        "sound": {},
        "normalise": {"width": 96, "height": 64, "rate": "8/1", "crf": 30, "sound": "dropped"},
        "render": {
            "first_frame": 0,
            "end_frame": 2,
            "length_s": None,
            "crop": None,
            "form": None,
        },
        "scan": {},
    }
    assert requests.keys() == TASKS.keys()
    for task, request in requests.items():
        payload = run_trusted(task, clip, request)
        assert isinstance(payload, Payload)
        assert json.loads(json.dumps(payload.header)) == payload.header
        assert all(type(blob) is bytes for blob in payload.blobs)


def test_a_rate_travels_as_a_fraction_in_words(clip) -> None:
    payload = run_trusted("probe", clip, {})
    assert isinstance(payload, Payload)
    assert payload.header["facts"]["video"]["average_rate"] == "30000/1001"


def reason(outcome: object) -> FailureReason:
    assert isinstance(outcome, Failure)
    return outcome.reason


def test_what_is_no_regular_file_is_a_failure_and_never_waits(tmp_path) -> None:
    pipe = tmp_path / "pipe.mp4"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, tmp_path / "missing.mp4", Path("/dev/zero")):
        assert reason(READER.probe(path)) is FailureReason.NOT_A_FILE


def test_a_link_to_a_clip_is_followed(clip, tmp_path) -> None:
    link = tmp_path / "link.mp4"
    link.symlink_to(clip)
    assert READER.probe(link) == READER.probe(clip)


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
    small = MediaReader(run_trusted, max_pixels=1000)
    assert reason(small.probe(clip)) is FailureReason.TOO_MANY_PIXELS
    assert reason(small.frames(clip, sampling="uniform-8")) is FailureReason.TOO_MANY_PIXELS


def test_frames_that_fill_the_memory_are_a_failure(clip, monkeypatch) -> None:
    monkeypatch.setattr(tasks_module, "MAX_FRAMES_BYTES", 200_000)
    outcome = READER.frames(clip, sampling="uniform-8", encoding="rgb24")
    assert reason(outcome) is FailureReason.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("task", "request_"),
    [
        ("probe", {"speed": 3}),
        ("probe", {"max_pixels": "9"}),
        ("frames", {}),
        ("frames", {"sampling": "uniform-8", "encoding": "png"}),
        ("frames", {"sampling": "uniform-8", "quality": 0}),
        ("frames", {"sampling": "uniform-0"}),
        ("normalise", {"width": 96, "height": 64, "rate": "8", "crf": 30, "sound": "kept"}),
        ("normalise", {"width": 97, "height": 64, "rate": "8/1", "crf": 30, "sound": "kept"}),
    ],
)
def test_a_wrong_request_is_the_callers_error(clip, task, request_) -> None:
    with pytest.raises(InvalidSettingError):
        run_trusted(task, clip, request_)


def test_unknown_names_list_the_known_ones(clip) -> None:
    with pytest.raises(UnknownNameError, match="normalise"):
        run_trusted("transcribe", clip, {})
    with pytest.raises(UnknownNameError, match="uniform-N"):
        READER.frames(clip, sampling="all")


class Liar:
    """A runner that hands back one payload, whatever is asked."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload

    def __call__(self, task: str, path: Path, request: Mapping[str, Any]) -> Payload | Failure:
        return self._payload


def honest(task: str, clip: Path, **request: Any) -> Payload:
    payload = run_trusted(task, clip, request)
    assert isinstance(payload, Payload)
    return Payload(json.loads(json.dumps(payload.header)), payload.blobs)


def lie(payload: Payload, change: Any) -> MediaReader:
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
}


@pytest.mark.parametrize("change", FACT_LIES.values(), ids=FACT_LIES.keys())
def test_false_facts_are_a_failure(clip, change) -> None:
    outcome = lie(honest("probe", clip), change).probe(clip)
    assert reason(outcome) is FailureReason.WORKER_DIED


FRAME_LIES = {
    "other sampling": lambda h: h.update(sampling="uniform-2"),
    "other encoding": lambda h: h.update(encoding="jpeg"),
    "one frame less": lambda h: h["frames"].pop(),
    "index beyond the clip": lambda h: h["frames"][-1].update(index=48),
    "index twice": lambda h: h["frames"][1].update(index=h["frames"][0]["index"]),
    "time runs back": lambda h: h["frames"][1].update(at_s="-1/1"),
    "size does not fit": lambda h: h["frames"][0].update(width=193),
    "huge": lambda h: h["frames"][0].update(width=60_000, height=60_000),
    "not a list": lambda h: h.update(frames={}),
}


@pytest.mark.parametrize("change", FRAME_LIES.values(), ids=FRAME_LIES.keys())
def test_false_frames_are_a_failure(clip, change) -> None:
    payload = honest("frames", clip, sampling="uniform-3", encoding="rgb24")
    outcome = lie(payload, change).frames(clip, sampling="uniform-3", encoding="rgb24")
    assert reason(outcome) is FailureReason.WORKER_DIED


def test_a_frame_that_is_no_jpeg_is_a_failure(clip) -> None:
    payload = honest("frames", clip, sampling="uniform-1")
    for blob in (b"GIF89a", b"\xff\xd8\xff" + bytes(1 << 20)):
        outcome = MediaReader(Liar(Payload(payload.header, (blob,)))).frames(
            clip, sampling="uniform-1"
        )
        assert reason(outcome) is FailureReason.WORKER_DIED


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["sound"].update(n_samples=3),
        lambda h: h["sound"].update(rate_hz=8_000),
        lambda h: h["sound"].update(n_samples=1 << 39),
        lambda h: h.update(sound=None),
    ],
)
def test_false_sound_is_a_failure(clip, change) -> None:
    outcome = lie(honest("sound", clip), change).sound(clip)
    assert reason(outcome) is FailureReason.WORKER_DIED


def test_a_false_clip_is_a_failure(clip) -> None:
    for payload in (
        Payload({"size_bytes": 3}, (b"abcd",)),
        Payload({"size_bytes": 12}, (b"hello world!",)),
        Payload({"size_bytes": 0}),
    ):
        outcome = MediaReader(Liar(payload)).normalise(clip, FORM)
        assert reason(outcome) is FailureReason.WORKER_DIED
