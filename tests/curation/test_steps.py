"""Steps between ingest and freeze: what they leave out, cut, mark and add."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from scenes.ball import SampleScene
from synthesise import ClipRecipe, synthesise
from unreel.benchmarks.loader import open_benchmark
from unreel.core.box import Box
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.curation.curation_run import run_curation
from unreel.curation.normalise import FrameCoordinateMapping, map_traces_to_segment
from unreel.media.encode import ClipWriter, VideoTrackSettings

RATE = Fraction(24)


def write_clip(path: Path, pictures: list[np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width, _ = pictures[0].shape
    track = VideoTrackSettings(
        codec="libx264",
        width=width,
        height=height,
        rate=RATE,
        time_base=1 / RATE,
        options={"crf": "12", "preset": "veryfast"},
    )
    with ClipWriter("mp4", track) as writer:
        for tick, rgb in enumerate(pictures):
            writer.add_picture(rgb, tick=tick)
        path.write_bytes(writer.finish())


def frames(n: int, *, seed: int) -> list[np.ndarray]:
    scene = SampleScene(128, 96, seed)
    return [scene.draw(index) for index in range(n)]


def tinted(picture: np.ndarray) -> np.ndarray:
    """The same in other colours."""
    return np.ascontiguousarray(255 - picture)


def still_films(tmp_path: Path) -> Path:
    films = tmp_path / "films"
    write_clip(films / "real/still.mp4", frames(1, seed=1) * 30)
    write_clip(films / "generated/Veo/moving.mp4", frames(30, seed=2))
    return films


def test_a_clip_of_two_shots_becomes_two_pieces_of_one_split(tmp_path, curation) -> None:
    joined = [*frames(30, seed=1), *map(tinted, frames(36, seed=2))]
    write_clip(tmp_path / "films/real/joined.mp4", joined)
    write_clip(tmp_path / "films/generated/Veo/plain.mp4", frames(30, seed=3))
    job = curation({"path": "films"}, split={})
    run_curation(job)
    entries = {e.name: e for e in open_benchmark(job.context.place.path / "benchmark")}
    lengths = {name: entry.facts.n_frames for name, entry in entries.items()}
    assert lengths == {
        "real/joined.mp4#1": 30,
        "real/joined.mp4#2": 36,
        "generated/Veo/plain.mp4": 30,
    }
    assert len({entries[f"real/joined.mp4#{n}"].split for n in (1, 2)}) == 1


def test_filled_borders_go(tmp_path, curation) -> None:
    barred = []
    for picture in frames(30, seed=1):
        canvas = np.zeros((128, 128, 3), np.uint8)
        canvas[16:112] = picture
        barred.append(canvas)
    write_clip(tmp_path / "films/barred.mp4", barred)
    job = curation({"path": "films", "label": "real"}, crop={})
    run_curation(job)
    (entry,) = open_benchmark(job.context.place.path / "benchmark")
    assert entry.facts.width == 128
    assert abs(entry.facts.height - 96) <= 4


def test_a_screened_piece_is_queued_and_a_person_may_keep_it(
    tmp_path, curation, quarantine
) -> None:
    still_films(tmp_path)
    job = curation({"path": "films"}, screen={})
    run_curation(job)
    assert quarantine(job) == {"real/still.mp4": "screen: motion"}
    queue = job.context.place.path / "queue.jsonl"
    lines = [json.loads(line) for line in queue.read_text().splitlines()]
    assert {line["name"]: line["proposed"] for line in lines} == {
        "generated/Veo/moving.mp4": "keep",
        "real/still.mp4": "remove",
    }
    decided = [line | {"decision": "keep"} for line in lines if line["proposed"] == "remove"]
    (tmp_path / "decided.jsonl").write_text("".join(json.dumps(one) + "\n" for one in decided))
    again = curation({"path": "films"}, screen={"decisions": "decided.jsonl"})
    assert len(run_curation(again).segments) == 2
    assert quarantine(again) == {}


def test_near_duplicates_of_a_label_are_kept_once(tmp_path, curation, quarantine) -> None:
    pytest.importorskip("pdqhash", reason="needs the extra `run_curation`")
    films = tmp_path / "films"
    write_clip(films / "real/large.mp4", frames(30, seed=1))
    half = [picture[::2, ::2] for picture in frames(30, seed=1)]
    write_clip(films / "real/small.mp4", half)
    write_clip(films / "generated/Veo/other.mp4", list(map(tinted, frames(30, seed=2))))
    job = curation({"path": "films"}, duplicates={})
    state = run_curation(job)
    assert quarantine(job) == {"real/small.mp4": "duplicates: near-duplicate"}
    assert {piece.entry.name for piece in state.segments if piece.family} == {"real/large.mp4"}
    kept = run_curation(curation({"path": "films"}, duplicates={"near": "keep"})).segments
    assert len({piece.family for piece in kept if piece.entry.name.startswith("real")}) == 1
    assert len(kept) == 3


def test_injected_twins_carry_their_truth_into_the_benchmark(tmp_path, curation) -> None:
    for seed in (1, 2):
        path = tmp_path / "films" / f"{seed}.mp4"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(synthesise(ClipRecipe(width=192, height=128, n_frames=48, seed=seed)))
    job = curation(
        {"path": "films", "label": "real"},
        inject={"categories": ["sudden-blurring"]},
        normalise={"width": 192, "height": 192},
    )
    run_curation(job)
    entries = {e.name: e for e in open_benchmark(job.context.place.path / "benchmark")}
    assert set(entries) == {
        f"{seed}.mp4{twin}" for seed in (1, 2) for twin in ("", "+sudden-blurring")
    }
    for seed in (1, 2):
        clean, twin = entries[f"{seed}.mp4"], entries[f"{seed}.mp4+sudden-blurring"]
        assert clean.traces == ()
        assert twin.split == clean.split
        assert twin.group == clean.group != ""
        assert twin.origin.creator == "injected"
        (trace,) = twin.traces
        assert trace.categories == {Category.SUDDEN_BLURRING}
        # The picture stands in the middle of a square, between bars.
        assert all(mark.box.y0 >= 1 / 6 for mark in trace.track)
        assert all(mark.box.y1 <= 5 / 6 for mark in trace.track)


def test_cleaned_copies_are_frozen_beside_their_clips(tmp_path, curation) -> None:
    pytest.importorskip("cv2", reason="needs the extra `run_curation`")
    write_clip(tmp_path / "films/a.mp4", frames(30, seed=1))
    job = curation(
        {"path": "films", "label": "real"},
        watermark={"texts": False, "clean": True},
        normalise={"width": 96, "height": 64},
    )
    run_curation(job)
    benchmark = open_benchmark(job.context.place.path / "benchmark")
    (entry,) = benchmark
    place = benchmark.find_cleaned(entry)
    assert place is not None
    assert Path(place).is_file()
    assert place != benchmark.find(entry)


@pytest.mark.timeout(900)
def test_a_leak_withholds_the_freeze_until_it_is_accepted(tmp_path, curation) -> None:
    films = tmp_path / "films"
    for number in range(40):  # fewer than 20 of a side are never enough to call it a leak
        side = "real" if number % 2 else f"generated/{'ABCDE'[number % 5]}"
        path = films / side / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        width = 96 if number % 2 else 64
        path.write_bytes(synthesise(ClipRecipe(width=width, height=64, n_frames=8, seed=number)))
    withheld = run_curation(curation({"path": "films"}, audit={"texts": False}))
    assert withheld.leaks
    assert withheld.frozen is None
    job = curation({"path": "films"}, audit={"texts": False}, accept_leak=True)
    assert run_curation(job).frozen is not None
    card = (job.context.place.path / "benchmark/README.md").read_text()
    assert "The labels leak" in card


def test_traces_follow_the_cut_and_the_picture() -> None:
    trace = Trace(
        span=TimeSpan(1_000_000, 3_000_000),
        track=(
            BoxAt(1_000_000, Box(0.1, 0.1, 0.3, 0.3)),
            BoxAt(2_000_000, Box(0.4, 0.4, 0.6, 0.6)),
        ),
    )
    view = FrameCoordinateMapping(
        window=Box(0.5, 0.0, 1.0, 1.0), shown_in=Box(0.0, 0.25, 1.0, 0.75)
    )
    (carried,) = map_traces_to_segment([trace], span=TimeSpan(1_500_000, 5_000_000), mapping=view)
    assert carried.span == TimeSpan(0, 1_500_000)
    (mark,) = carried.track
    assert mark.at_us == 500_000
    expected = Box(0.0, 0.45, 0.2, 0.55)
    assert mark.box.iou(expected) == pytest.approx(1)
    assert map_traces_to_segment([trace], span=TimeSpan(3_000_000, 4_000_000), mapping=view) == ()
    left = FrameCoordinateMapping(window=Box(0.0, 0.0, 0.05, 0.05))
    assert map_traces_to_segment([trace], span=TimeSpan(0, 9_000_000), mapping=left) == ()
