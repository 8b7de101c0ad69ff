"""Pieces on disk: they come back as they were, in order, and what speaks of all of them needs no list."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from facts import FACTS
from unreel.benchmarks.entry import Entry
from unreel.core.box import Box
from unreel.core.clip import AudioFacts, Clip, FileTag, Generated, Real
from unreel.core.content_ids import compute_placeholder_clip_id, digest
from unreel.core.judgement import Label, Rating, Vote
from unreel.core.output_files import OutputDirectory
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.curation.freeze.step import assign_segment_splits
from unreel.curation.segment import (
    CONTRADICTION,
    ClipSegment,
    FileToPublish,
    MeasuredShot,
    SegmentWorkDirectory,
    deduplicate_segments,
)
from unreel.media.fingerprint import HASH_WORDS, SKETCH_SIDE, WAYS, BorderWidths, ClipFingerprint
from unreel.media.messages import N_PICKED
from unreel.media.render import CroppedFrameRange, PixelCrop

THIRD = Fraction(1, 3)


def clip_of(name: str) -> Clip:
    times = {"first_at_s": Fraction(-1, 7), "duration_s": THIRD, "variable_rate": True}
    video = replace(FACTS.video, rotation_deg=90, average_rate=Fraction(30000, 1001), **times)
    sound = AudioFacts(codec="aac", sample_rate_hz=48_000, channels=2, duration_s=THIRD)
    facts = replace(FACTS, video=video, audio=(sound,), tags=(FileTag("encoder", "x"),))
    return Clip(id=compute_placeholder_clip_id(name), location=f"films/{name}.mp4", facts=facts)


def piece_of(name: str, *, label: Label = Label.REAL, clip: str | None = None) -> ClipSegment:
    origin = Real() if label is Label.REAL else Generated("Veo", "text")
    own = clip_of(clip or name)
    entry = Entry(name=name, location=own.location, origin=origin)
    return ClipSegment(entry=entry, clip=own, source=own.id, length_s=THIRD)


def whole_piece(name: str) -> ClipSegment:
    """One with everything that a piece may carry."""
    trace = Trace(
        span=TimeSpan(0, 90),
        track=(BoxAt(1, Box(0.1, 0.2, 0.3, 1 / 3)),),
        categories=frozenset({Category.OTHER, Category.SUDDEN_BLURRING}),
        explanation="a hand\u00e9 with six fingers\n",
    )
    shot = MeasuredShot(
        first_frame=0,
        end_frame=7,
        start_s=Fraction(0),
        length_s=THIRD,
        borders=BorderWidths(left=3),
        motion=0.1 + 0.2,
        sharpness=1e-300,
        noise=2.5,
        lightness=100.0,
    )
    plain = piece_of(name, label=Label.GENERATED)
    entry = replace(
        plain.entry,
        traces=(trace,),
        rating=Rating(score=3, problem="p"),
        votes=(Vote("ada", Label.REAL),),
        group="scene",
        prompt="a cat",
    )
    hashes = np.random.default_rng(len(name)).bytes(len(WAYS) * N_PICKED * HASH_WORDS * 8)
    return replace(
        plain,
        entry=entry,
        cut=CroppedFrameRange(
            first_frame=1,
            end_frame=6,
            length_s=THIRD,
            crop=PixelCrop(left=1, top=2, width=3, height=4),
        ),
        start_s=Fraction(1, 24),
        cleaned=clip_of("cleaned"),
        first_frame=FileToPublish(sha256="0" * 64, location="f.jpg", size_bytes=3),
        family=digest("family"),
        shots=(shot, shot),
        fingerprint=ClipFingerprint(sketch=bytes(SKETCH_SIDE**2), hashes=hashes),
        notes={"watermark": {"found": [], "inconclusive": None}, "cluster": 3},
    )


@pytest.fixture
def shelf(tmp_path: Path) -> SegmentWorkDirectory:
    return SegmentWorkDirectory(OutputDirectory(tmp_path))


def test_pieces_come_back_as_they_were_and_in_their_order(shelf) -> None:
    put = [whole_piece("b"), piece_of("a"), *(piece_of(f"c{number}") for number in range(1_500))]
    found = shelf.write("any", put).segments
    assert len(found) == len(put)
    assert list(found) == put
    assert list(found) == put  # and again


def test_the_same_bytes_are_kept_once_and_not_at_all_under_two_labels(shelf) -> None:
    put = [
        piece_of("a"),
        piece_of("b", clip="same"),
        piece_of("c", clip="odd"),
        piece_of("d", clip="same"),
        piece_of("e", clip="odd", label=Label.GENERATED),
        piece_of("f", clip="same"),
    ]
    kept, out = deduplicate_segments(shelf.write("any", put).segments, step="any")
    assert [piece.entry.name for piece in kept] == ["a", "b"]
    told = {left.name: (left.reason, left.detail) for left in out}
    assert told["d"] == told["f"] == ("duplicate", "the bytes of b")
    assert told["c"][0] == told["e"][0] == CONTRADICTION
    assert told["c"][1].endswith("another: c, e")


def test_two_cuts_of_one_file_are_two_pieces(shelf) -> None:
    piece = piece_of("a")
    put = [piece, replace(piece, cut=CroppedFrameRange(first_frame=0, end_frame=3))]
    kept, out = deduplicate_segments(shelf.write("any", put).segments, step="any")
    assert list(kept) == put
    assert list(out) == []


def test_a_shelf_is_cleared_of_what_no_step_reads_and_of_nothing_below_it(shelf) -> None:
    kept = shelf.write("kept", [piece_of("a")]).segments
    shelf.write("gone", [piece_of("b")])
    shelf.folder.write("own/film.mp4", b"a film")
    shelf.clear(segments_to_keep=kept)
    assert shelf.folder.files() == ["kept.rows", "own/film.mp4"]


def test_the_same_bytes_go_one_way_whatever_video_they_come_from(shelf, curation) -> None:
    put = [
        replace(
            piece_of(f"{number}-{twin}", clip=f"{number}"),
            source=compute_placeholder_clip_id(f"{number}{twin}"),
        )
        for number in range(12)
        for twin in "ab"
    ]
    pieces = shelf.write("any", put).segments
    bench = curation({"path": "films"}).context
    splits = assign_segment_splits(bench, pieces, split_parts=(1, 1, 1), seed=0)
    assert splits[::2].tolist() == splits[1::2].tolist()
    assert set(splits) == {0, 1, 2}
