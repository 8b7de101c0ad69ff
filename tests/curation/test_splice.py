"""`[splice]`: long videos with exact ground truth whose files do not reveal the generated segments."""

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("lance", reason="needs the extra `eval`")

from curation.splices import (
    HEIGHT,
    READER,
    WIDTH,
    build_run,
    count_exact_ends,
    draw_sources,
    encode_pictures,
    read_pictures,
    splice_badly,
)
from footage import film, write_clip
from synthesise import ClipRecipe, synthesise
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import open_benchmark
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.span import TimeSpan
from unreel.curation.audit.clip_features import AuditFeatureSet
from unreel.curation.audit.label_leaks import LabelLeakFinding, audit_label_leaks
from unreel.curation.audit.windows import read_window_features, sample_window_pairs
from unreel.curation.curation_run import run_curation
from unreel.curation.normalise import FrameCoordinateMapping
from unreel.curation.recipe import parse_curation_recipe
from unreel.curation.splice.clip import SplicedPartReader, encode_spliced_video
from unreel.curation.splice.plan import SplicedPart
from unreel.curation.splice.step import SPLICE, get_part_spans
from unreel.curation.state import CurationState
from unreel.media.normalise import NormalisedClipFormat

RATE = 8
FORM = NormalisedClipFormat(width=WIDTH, height=HEIGHT, rate=Fraction(RATE))
Spliced = tuple[CurationState, dict[str, Path], Path]


@pytest.fixture(scope="module")
def spliced(tmp_path_factory: pytest.TempPathFactory) -> Spliced:
    """Six videos of 10 seconds from drawn clips."""
    folder = tmp_path_factory.mktemp("spliced")
    root, out = folder / "sources", folder / "out"
    draw_sources(root, n_real=30, n_generated=6, rate=RATE, lengths_s=(2.0, 4.0))
    sections = {"splice": {"length_s": 10, "share": 0.8, "segments": 2}, "inject": {"share": 0.3}}
    state = run_curation(build_run(root, out, rate=RATE, **sections))
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*.mp4")}
    return state, files | {name.removesuffix(".mp4"): own for name, own in files.items()}, out


def test_every_video_has_the_format_and_the_length_of_the_recipe(spliced: Spliced) -> None:
    pieces = list(spliced[0].pieces)
    assert len(pieces) >= 4
    for piece in pieces:
        video = piece.clip.facts.video
        assert (video.width, video.height, video.n_frames) == (WIDTH, HEIGHT, 80)
        assert not video.variable_rate
    assert {piece.entry.label for piece in pieces} == set(Label)


def test_the_ground_truth_is_exact_to_the_frame(spliced: Spliced) -> None:
    state, sources, _ = spliced
    pieces = list(state.pieces)
    right, total = count_exact_ends(pieces, sources, rate=RATE)
    assert right == total > 20
    for piece in pieces:
        ends = [0]
        for _, n_frames in piece.notes[SPLICE]:
            ends.append(ends[-1] + n_frames)
        parts = dict(zip(pairwise(ends), piece.notes[SPLICE], strict=True))
        whole = {
            (round(trace.span.start_us * RATE / 1e6), round(trace.span.end_us * RATE / 1e6))
            for trace in piece.entry.traces
            if not trace.track
        }
        assert whole == {span for span, (name, _) in parts.items() if "generated/" in name}
        for trace in piece.entry.traces:
            assert trace.span.end_us <= 10_000_000
            instants = [mark.at_us * RATE / 1e6 for mark in trace.track]
            assert all(abs(at - round(at)) < 1e-4 for at in instants)


def test_the_result_is_a_benchmark_of_locate(spliced: Spliced) -> None:
    rows = [row for row in open_benchmark(spliced[2] / "benchmark") if isinstance(row, Entry)]
    assert len(rows) == len(spliced[0].pieces)
    assert any(row.traces for row in rows)
    assert all(bool(row.traces) == (row.label is Label.GENERATED) for row in rows)


def test_key_frames_have_one_distance(spliced: Spliced) -> None:
    for piece in spliced[0].pieces:
        scan = READER.scan(Path(piece.clip.location))
        assert not isinstance(scan, Failure)
        assert scan.keys == (0, 48)
        assert len(scan.packet_bytes) == scan.n_frames


def test_the_audit_has_a_row_for_windows(spliced: Spliced) -> None:
    found = spliced[0].audit
    assert found is not None
    (view,) = [own for own in found.document["views"] if own["view"] == "window"]
    assert view["n_real"] == view["n_generated"] > 0
    assert "| window |" in found.text


def test_the_windows_of_a_video_come_in_pairs_of_parts_at_the_same_offsets(
    spliced: Spliced,
) -> None:
    for piece in spliced[0].pieces:
        parts, segments = get_part_spans(piece), [trace.span for trace in piece.entry.traces]
        assert parts[-1].end_us == 10_000_000
        pairs = sample_window_pairs(parts, segments, clip=piece.entry.name)
        assert bool(pairs) == bool(segments)
        used = []
        for pair in pairs:
            (part, other) = (_get_part(parts, starts) for starts in pair)
            used += [part, other]
            assert any(map(part.overlap_us, segments))
            assert not any(map(other.overlap_us, segments))
            offsets = [
                [start - own.start_us for start in starts]
                for own, starts in zip((part, other), pair, strict=True)
            ]
            assert offsets[0] == offsets[1]
        assert len(set(used)) == len(used)


def _get_part(parts: Sequence[TimeSpan], starts: Sequence[int]) -> TimeSpan:
    """Return the only part that contains the middles of the windows."""
    (part,) = {
        own for own in parts for start in starts if own.start_us <= start + 500_000 < own.end_us
    }
    return part


def test_the_same_recipe_gives_the_same_videos(spliced: Spliced, tmp_path: Path) -> None:
    state, sources, _ = spliced
    root = next(iter(sources.values())).parents[0]
    root = root.parent if root.name == "real" else root.parents[1]
    sections = {"splice": {"length_s": 10, "share": 0.8, "segments": 2}, "inject": {"share": 0.3}}
    again = run_curation(build_run(root, tmp_path / "out", rate=RATE, **sections), until="splice")
    assert [p.clip.id for p in again.pieces] == [p.clip.id for p in state.pieces]


@pytest.mark.slow
def test_a_splice_without_matched_grain_leaks(tmp_path: Path) -> None:
    root = tmp_path / "sources"
    draw_sources(root, n_real=40, n_generated=10, rate=RATE, lengths_s=(2.0, 4.0))
    real, made = (sorted((root / name).rglob("*.mp4")) for name in ("real", "generated"))
    windows = []
    for number in range(10):
        into = tmp_path / f"{number}.mp4"
        parts, segments = splice_badly(
            real[4 * number : 4 * number + 4], [made[number]], into, form=FORM
        )
        own = read_window_features(
            into,
            clip=into.name,
            group=into.name,
            parts=parts,
            segments=segments,
            reader=READER,
        )
        assert not isinstance(own, Failure)
        windows += own
    view = audit_label_leaks(windows, seed=0, views=[AuditFeatureSet.WINDOW]).views[0]
    assert view.finding is LabelLeakFinding.LEAKS
    assert {leak.feature for leak in view.leaks} & {"noise", "bit rate"}


def test_odd_sizes_variable_rates_and_silence_can_be_spliced(tmp_path: Path) -> None:
    root = tmp_path / "sources"
    (root / "real").mkdir(parents=True)
    (root / "generated/Veo").mkdir(parents=True)
    late = tuple(Fraction(n * n, 150) for n in range(24))
    recipes = [
        ClipRecipe(n_frames=24, instants_s=late, rate=Fraction(8), container="mkv"),
        ClipRecipe(n_frames=24, rate=Fraction(8), tone_hz=440, seed=1),
        ClipRecipe(n_frames=24, rate=Fraction(8), rotation_deg=90, seed=2),
    ]
    for number, recipe in enumerate(recipes):
        path = root / f"real/{number}.{recipe.container}"
        path.write_bytes(synthesise(recipe))
    (root / "real/9.mp4").write_bytes(write_clip(film(9, n_frames=24, width=67, height=51), rate=8))
    made = write_clip(film(5, n_frames=24, width=64, height=96), rate=8)
    (root / "generated/Veo/1.mp4").write_bytes(made)
    form = {"width": WIDTH, "height": HEIGHT, "rate": RATE, "sound": "kept"}
    run = build_run(root, tmp_path / "out", rate=RATE, splice={"length_s": 8, "share": 1})
    recipe = run.recipe.model_copy(
        update={
            "normalise": parse_curation_recipe(
                {"name": "x", "source": {"path": "x"}, "normalise": form}
            ).normalise
        }
    )
    object.__setattr__(run, "recipe", recipe)
    state = run_curation(run, until="splice")
    (piece,) = state.pieces
    assert piece.entry.traces
    assert piece.clip.facts.audio
    sound = READER.sound(Path(piece.clip.location))
    assert not getattr(sound, "samples", sound).any()  # type: ignore[union-attr]


def test_the_codec_generation_of_the_source_is_hidden(tmp_path: Path) -> None:
    """The same pictures from two generations: the packets of the halves differ when joined as they are."""
    pictures = film(3, n_frames=24, width=WIDTH, height=HEIGHT)
    files = {str(crf): tmp_path / f"{crf}.mp4" for crf in (20, 32)}
    for crf, path in files.items():
        path.write_bytes(write_clip(pictures, rate=RATE, crf=int(crf)))
    part = SplicedPart(
        clip="20",  # type: ignore[arg-type]  a name in the place of a hash
        start_s=Fraction(0),
        n_frames=24,
        crop=None,
        mapping=FrameCoordinateMapping(),
        generated=False,
    )
    parts = [part, replace(part, clip="32")]  # type: ignore[arg-type]
    reader = SplicedPartReader(READER, files, FORM)  # type: ignore[arg-type]
    joined = [rgb for path in files.values() for rgb in read_pictures(path, FORM.rate)]
    plain = encode_pictures(joined, FORM.rate, "libx264", {"qp": "18", "bf": "0", "g": "48"})
    matched, _ = encode_spliced_video(parts, reader, seed=0)
    assert _compare_halves(matched, tmp_path) < _compare_halves(plain, tmp_path) / 10


def test_parts_of_many_small_frames_are_read_in_several_requests(tmp_path: Path) -> None:
    path = tmp_path / "long.mp4"
    path.write_bytes(write_clip(film(7, n_frames=80, width=WIDTH, height=HEIGHT), rate=RATE))
    part = SplicedPart(
        clip="long",  # type: ignore[arg-type]  a name in the place of a hash
        start_s=Fraction(0),
        n_frames=80,
        crop=None,
        mapping=FrameCoordinateMapping(),
        generated=False,
    )
    reader = SplicedPartReader(READER, {"long": path}, FORM)  # type: ignore[dict-item]
    times = [at_s for at_s, _ in reader.frames(part, range(80))]
    assert times == [Fraction(tick, RATE) for tick in range(80)]


def _compare_halves(data: bytes, folder: Path) -> float:
    """Return the difference of the mean logarithmic packet sizes of the halves, without their starts."""
    path = folder / "joined.mp4"
    path.write_bytes(data)
    scan = READER.scan(path)
    assert not isinstance(scan, Failure)
    first, second = (np.log(scan.packet_bytes[begin : begin + 16]).mean() for begin in (8, 32))
    return abs(float(first - second))


def test_spliced_videos_need_a_format() -> None:
    with pytest.raises(InvalidSettingError, match="Add \\[normalise\\]"):
        parse_curation_recipe({"name": "x", "source": {"path": "x"}, "splice": {}})


def test_the_audit_is_written_to_the_benchmark(spliced: Spliced) -> None:
    stored = json.loads((spliced[2] / "benchmark" / "audit.json").read_text())
    assert [view["view"] for view in stored["views"]][-1] == "window"
