import dataclasses
import io
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from footage import film, write_clip
from scenes.ball import read_index
from unreel.core.failure import Failure, FailureReason
from unreel.core.settings import EnvironmentSettings
from unreel.media.access import open_media_reader
from unreel.media.messages import MAX_PIXELS, TaskReplyPayload
from unreel.media.reader import MediaReader
from unreel.media.scan import (
    HISTOGRAM_BINS,
    PICKED_SIDE,
    build_scan_payload,
    parse_scan_payload,
    scan_clip,
)


def scanned(data: io.BytesIO | bytes):
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    return scan_clip(file, max_pixels=MAX_PIXELS)


def test_every_frame_is_measured_at_its_exact_time(make) -> None:
    found = scanned(make(n_frames=30, rate=Fraction(30000, 1001)))
    assert found.n_frames == 30
    assert [b - a for a, b in pairwise(found.instants_s)] == [Fraction(1001, 30000)] * 29
    assert found.duration_s == Fraction(1001, 1000)
    assert found.histograms.shape == (30, HISTOGRAM_BINS)
    assert found.lightness.shape == found.changes.shape == found.stirs.shape == (30,)


def test_exact_times_survive_the_way_out_of_the_child(make) -> None:
    for found in (
        scanned(make(n_frames=5, rate=Fraction(30000, 1001))),
        scanned(make(n_frames=3, instants_s=(Fraction(0), Fraction(7, 9000), Fraction(1, 90)))),
        scanned(make(n_frames=1)),
    ):
        again = parse_scan_payload(build_scan_payload(found))
        assert again.instants_s == found.instants_s
        assert again.end_s == found.end_s


def test_picked_frames_are_the_planned_ones_and_small(make) -> None:
    found = scanned(make(n_frames=80, width=640, height=360))
    assert [frame.index for frame in found.picked] == [5, 15, 25, 35, 45, 55, 65, 75]
    assert [read_index(frame.rgb) for frame in found.picked] == [5, 15, 25, 35, 45, 55, 65, 75]
    assert {(frame.width, frame.height) for frame in found.picked} == {(PICKED_SIDE, 252)}


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_turned_clip_is_scanned_as_it_is_shown(make, turn) -> None:
    upright, turned = scanned(make()), scanned(make(rotation_deg=turn))
    assert (turned.width, turned.height) == (upright.width, upright.height)
    for ours, theirs in zip(turned.picked, upright.picked, strict=True):
        assert read_index(ours.rgb) == read_index(theirs.rgb)
        assert ours.rgb.shape == theirs.rgb.shape


@pytest.mark.parametrize("container", ["mkv", "webm", "gif", "ts"])
def test_every_container_can_be_scanned(make, container) -> None:
    found = scanned(make(container=container, n_frames=20))
    assert found.n_frames == 20
    assert [read_index(frame.rgb) for frame in found.picked] == [f.index for f in found.picked]


def test_a_small_thing_that_moves_stirs_a_still_scene() -> None:
    frames = [film(2)[0].copy() for _ in range(16)]
    for index, frame in enumerate(frames):
        frame[40:60, 8 * index : 8 * index + 20] = (255, 255, 255)
    found = scanned(write_clip(frames))
    assert found.changes[1:].mean() < 5
    assert found.stirs[1:].mean() > 20


def test_blur_lowers_sharpness_and_grain_raises_noise() -> None:
    plain = film(3, n_frames=4, width=320, height=192)
    small = [np.asarray(Image.fromarray(p).resize((20, 12))) for p in plain]
    blurred = [np.asarray(Image.fromarray(p).resize((320, 192))) for p in small]
    grain = np.random.default_rng(0).normal(0, 12, plain[0].shape[:2])[..., None]
    grainy = [np.clip(p + grain, 0, 255).astype(np.uint8) for p in plain]
    first, soft, rough = (
        scanned(write_clip(p, crf=12)).picked[0] for p in (plain, blurred, grainy)
    )
    assert soft.sharpness < 0.5 * first.sharpness
    assert rough.noise > 2 * first.noise
    assert rough.noise == pytest.approx(12, rel=0.25)


def test_what_comes_out_of_the_sandbox_is_what_the_task_measured(tmp_path, make) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(make(n_frames=12).getvalue())
    with (
        open_media_reader(EnvironmentSettings(), trusted=True) as ours,
        open_media_reader(EnvironmentSettings(), trusted=False) as confined,
    ):
        here, there = ours.scan(path), confined.scan(path)
    assert not isinstance(here, Failure)
    assert not isinstance(there, Failure)
    assert here.instants_s == there.instants_s
    assert here.end_s == there.end_s
    for name in ("histograms", "lightness", "changes", "stirs"):
        assert np.array_equal(getattr(here, name), getattr(there, name)), name
    for ours_, theirs in zip(here.picked, there.picked, strict=True):
        assert np.array_equal(ours_.rgb, theirs.rgb)


def test_a_damaged_clip_is_a_failure(tmp_path, make) -> None:
    path = tmp_path / "clip.mkv"
    data = make(container="mkv", n_frames=60, width=320, height=192).getvalue()
    path.write_bytes(data[: len(data) // 2] + bytes(len(data) // 4) + data[-len(data) // 4 :])
    with open_media_reader(EnvironmentSettings(), trusted=False) as reader:
        found = reader.scan(path)
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.UNDECODABLE


def test_a_clip_with_too_many_pixels_is_refused(tmp_path, make) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(make().getvalue())
    with open_media_reader(EnvironmentSettings(media_pixels=100), trusted=True) as reader:
        found = reader.scan(path)
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.TOO_MANY_PIXELS


@pytest.fixture(scope="module")
def honest() -> TaskReplyPayload:
    framed = [np.pad(p, ((8, 8), (0, 0), (0, 0))) for p in film(5, n_frames=10)]
    return build_scan_payload(scanned(write_clip(framed)))


class TestWhatAHostileChildMaySend:
    def sent(self, payload: TaskReplyPayload, tmp_path) -> Failure:
        path = tmp_path / "clip.mp4"
        path.touch()
        found = MediaReader(lambda _task, _path, _request, _on_part: payload).scan(path)
        assert isinstance(found, Failure), "the reply was believed"
        assert found.reason is FailureReason.WORKER_DIED
        return found

    def test_an_honest_reply_is_believed(self, honest) -> None:
        assert parse_scan_payload(honest).n_frames == 10

    @pytest.mark.parametrize("place", range(5 + 2 * 8))
    def test_a_blob_of_another_length_is_refused(self, honest, tmp_path, place) -> None:
        blobs = list(honest.blobs)
        blobs[place] = blobs[place][:-1] if place < 5 or place % 2 == 0 else b""
        self.sent(dataclasses.replace(honest, blobs=tuple(blobs)), tmp_path)

    def test_a_missing_blob_is_refused(self, honest, tmp_path) -> None:
        self.sent(dataclasses.replace(honest, blobs=honest.blobs[:-1]), tmp_path)

    @pytest.mark.parametrize("worst", [-(1 << 63), (1 << 63) - 1])
    def test_times_at_the_ends_of_their_range_are_refused(self, honest, tmp_path, worst) -> None:
        ticks = np.frombuffer(honest.blobs[0], "<i8").copy()
        ticks[0 if worst < 0 else -1] = worst
        self.sent(dataclasses.replace(honest, blobs=(ticks.tobytes(), *honest.blobs[1:])), tmp_path)

    def test_frames_out_of_order_are_refused(self, honest, tmp_path) -> None:
        ticks = np.frombuffer(honest.blobs[0], "<i8")[::-1].tobytes()
        self.sent(dataclasses.replace(honest, blobs=(ticks, *honest.blobs[1:])), tmp_path)

    @pytest.mark.parametrize("place", [2, 3, 4])
    @pytest.mark.parametrize("value", [float("nan"), -1.0, 256.0, float("inf")])
    def test_levels_that_cannot_be_are_refused(self, honest, tmp_path, place, value) -> None:
        blobs = list(honest.blobs)
        blobs[place] = np.full(10, value, "<f4").tobytes()
        self.sent(dataclasses.replace(honest, blobs=tuple(blobs)), tmp_path)

    @pytest.mark.parametrize(
        "change",
        [
            {"n_frames": 0},
            {"n_frames": 1 << 30},
            {"time_base": "0/1"},
            {"last_ticks": 0},
            {"last_ticks": (1 << 63) - 1},
            {"last_ticks": 1 << 63},
            {"time_base": "9999999999999999999/1"},
            {"time_base": "1/3 "},
            {"picked": []},
            {"width": 1 << 20},
            {"unasked": 1},
        ],
    )
    def test_a_header_that_cannot_be_is_refused(self, honest, tmp_path, change) -> None:
        self.sent(dataclasses.replace(honest, header=honest.header | change), tmp_path)

    @pytest.mark.parametrize(
        "change",
        [
            {"index": 10},
            {"width": PICKED_SIDE + 1},
            {"sharpness": float("nan")},
            {"levels": {"left": 300}},
            {"levels": {"middle": 3}},
        ],
    )
    def test_a_picture_that_cannot_be_is_refused(self, honest, tmp_path, change) -> None:
        picked = [dict(frame) for frame in honest.header["picked"]]
        picked[-1] |= change
        header = honest.header | {"picked": picked}
        self.sent(dataclasses.replace(honest, header=header), tmp_path)
