"""Pieces on disk: they come back as they were, in order, and what speaks of all of them needs no list."""

import hashlib
import io
import resource
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.matched import match_lengths
from facts import FACTS
from unreel.benchmarks.entry import Entry
from unreel.core.box import Box
from unreel.core.clip import AudioFacts, Clip, FileTag, Generated, Real
from unreel.core.content_ids import compute_placeholder_clip_id, digest
from unreel.core.judgement import Label, Rating, Vote
from unreel.core.output_files import OutputDirectory
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.curation.duplicates import StoredFingerprints
from unreel.curation.freeze.manifest import ManifestWriter
from unreel.curation.freeze.splits import SplitCandidate, assign_segment_splits, assign_splits
from unreel.curation.segment import (
    CONTRADICTION,
    ClipSegment,
    ExcludedSegment,
    ExcludedSegmentWriter,
    FileToPublish,
    MeasuredShot,
)
from unreel.curation.segment_table import NO_PIECES, SegmentWorkDirectory, deduplicate_segments
from unreel.curation.step_result_table import CurationRequestKeys
from unreel.curation.working_table import SortedRunWriter, merge_sorted_runs
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
    found = shelf.sift("any", put).pieces
    assert len(found) == len(put)
    assert list(found) == put
    assert list(found) == put  # and again


def test_a_part_of_the_pieces_is_read_in_any_order(shelf) -> None:
    put = [piece_of(name) for name in "dacb"]
    found = shelf.sift("any", put).pieces
    assert [piece.entry.name for piece in found.by_name()] == ["a", "b", "c", "d"]
    some = found.by_name().where(np.array([True, False, True, True]))
    assert [piece.entry.name for piece in some] == ["a", "c", "d"]
    assert [subject.clip for subject in some.subjects()] == [clip_of(name).id for name in "acd"]


def test_hashes_come_in_blocks_with_the_places_of_their_clips(shelf) -> None:
    found = shelf.sift("any", [whole_piece("x" * length) for length in (3, 1, 4, 2, 5)]).pieces
    some = found.where(np.array([True, True, False, True, True]))
    for pieces in (found, some):
        prints = StoredFingerprints(pieces)
        blocks = list(prints.blocks())
        places = np.concatenate([block[0] for block in blocks])
        assert sorted(places.tolist()) == list(range(len(pieces)))
        assert (prints.words(places) == np.concatenate([block[1] for block in blocks])).all()
        own = {piece.clip.id: piece.fingerprint.words().tolist() for piece in pieces}
        assert [own[name] for name in prints.names] == prints.words(np.sort(places)).tolist()


def test_no_pieces_are_no_trouble(shelf) -> None:
    for none in (NO_PIECES, shelf.sift("any", []).pieces):
        assert (len(none), list(none), list(none.by_name())) == (0, [], [])
        assert list(deduplicate_segments(none, step="any")[0]) == []


def test_the_same_bytes_are_kept_once_and_not_at_all_under_two_labels(shelf) -> None:
    put = [
        piece_of("a"),
        piece_of("b", clip="same"),
        piece_of("c", clip="odd"),
        piece_of("d", clip="same"),
        piece_of("e", clip="odd", label=Label.GENERATED),
        piece_of("f", clip="same"),
    ]
    kept, out = deduplicate_segments(shelf.sift("any", put).pieces, step="any")
    assert [piece.entry.name for piece in kept] == ["a", "b"]
    told = {left.name: (left.reason, left.detail) for left in out}
    assert told["d"] == told["f"] == ("duplicate", "the bytes of b")
    assert told["c"][0] == told["e"][0] == CONTRADICTION
    assert told["c"][1].endswith("another: c, e")


def test_two_cuts_of_one_file_are_two_pieces(shelf) -> None:
    piece = piece_of("a")
    put = [piece, replace(piece, cut=CroppedFrameRange(first_frame=0, end_frame=3))]
    kept, out = deduplicate_segments(shelf.sift("any", put).pieces, step="any")
    assert list(kept) == put
    assert list(out) == []


def test_a_shelf_is_cleared_of_what_no_step_reads_and_of_nothing_below_it(shelf) -> None:
    kept = shelf.sift("kept", [piece_of("a")]).pieces
    shelf.sift("gone", [piece_of("b")])
    shelf.folder.write("own/film.mp4", b"a film")
    shelf.clear(keep=kept)
    assert shelf.folder.files() == ["kept.rows", "own/film.mp4"]


def test_lines_in_many_runs_are_read_with_few_files_open(shelf, monkeypatch) -> None:
    monkeypatch.setattr("unreel.curation.working_table._RUN", 2)
    lines = [(number, "x") for number in np.random.default_rng(0).permutation(1_001).tolist()]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    n_open = max(int(own.name) for own in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + 25, hard))
    try:
        runs = SortedRunWriter(shelf.folder, "many")
        for line in lines:
            runs.add(line)
        files = runs.end()
        assert list(merge_sorted_runs(shelf.folder, files)) == sorted(lines)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert shelf.folder.files() == sorted(files)


def test_what_is_left_out_is_told_in_one_order_whoever_left_it(shelf, monkeypatch) -> None:
    monkeypatch.setattr("unreel.curation.working_table._RUN", 7)
    rng = np.random.default_rng(0)
    every = [
        ExcludedSegment(f"n{number}", step, reason, "d\u2028", "", at_us)
        for number in rng.permutation(40)
        for step, reason, at_us in (("b", "x", None), ("a", "y", 5), ("b", "x", 0))
    ]
    leaving = (
        ExcludedSegmentWriter(shelf.folder, "one"),
        ExcludedSegmentWriter(shelf.folder, "other"),
    )
    for number, left in enumerate(every):
        leaving[number % 2].add(left)
    whole = leaving[0].end() + leaving[1].end()
    key = lambda left: (left.name, left.step, left.reason, -1 if left.at_us is None else left.at_us)  # noqa: E731
    assert list(whole.read(shelf.folder)) == sorted(every, key=key)
    assert whole.counts == {("b", "x"): 80, ("a", "y"): 40}


@given(st.lists(st.text(max_size=3), max_size=30))
def test_keys_have_the_digest_and_the_order_of_their_texts(words: list[str]) -> None:
    keys = [digest(word) for word in words]
    packed = CurationRequestKeys(keys)
    order = packed.order()
    assert [keys[place] for place in order] == sorted(set(keys))
    assert packed.digest(order) == digest(*sorted(set(keys)))
    assert [key for chunk in packed.chunks() for key in chunk] == keys


def test_a_manifest_has_the_same_bytes_as_if_it_were_written_at_once() -> None:
    rows = [{"name": f"clip {number:06}", "score": number % 5 or None} for number in range(25_001)]
    schema = pa.schema([("name", pa.string()), ("score", pa.int64())])
    at_once, streamed = io.BytesIO(), io.BytesIO()
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, at_once, compression="zstd", row_group_size=10_000)
    manifest = ManifestWriter(streamed)
    for row in rows:
        manifest.add(row)
    manifest.end()
    assert (
        hashlib.sha256(streamed.getvalue()).digest() == hashlib.sha256(at_once.getvalue()).digest()
    )


def test_the_same_bytes_go_one_way_whatever_video_they_come_from(shelf, curation) -> None:
    put = [
        replace(
            piece_of(f"{number}-{twin}", clip=f"{number}"),
            source=compute_placeholder_clip_id(f"{number}{twin}"),
        )
        for number in range(12)
        for twin in "ab"
    ]
    pieces = shelf.sift("any", put).pieces
    bench = curation({"path": "films"}).bench
    splits = assign_segment_splits(bench, pieces, shares=(1, 1, 1), seed=0)
    assert splits[::2].tolist() == splits[1::2].tolist()
    assert set(splits) == {0, 1, 2}


def split_in_fractions(
    bundles: list[list[SplitCandidate]], shares: dict[str, int], seed: int
) -> dict[str, str]:
    """The rule of the splits as it is told, in fractions and with lists."""
    totals = Counter(member.label for bundle in bundles for member in bundle)
    whole = sum(shares.values())
    placed: Counter[tuple[str, str]] = Counter()
    n_placed: Counter[str] = Counter()
    chosen: dict[str, str] = {}
    first = {id(bundle): min(member.clip for member in bundle) for bundle in bundles}

    def strain(split: str, labels: Counter[str]) -> Fraction:
        wanted = {label: Fraction(shares[split] * n, whole) for label, n in totals.items()}
        return sum(
            (
                Fraction((placed[split, label] + n) ** 2 - placed[split, label] ** 2)
                / wanted[label]
                for label, n in labels.items()
            ),
            Fraction(0),
        )

    order = lambda one: (-len(one), digest("split", str(seed), first[id(one)]))  # noqa: E731
    for bundle in sorted(bundles, key=order):
        labels = Counter(member.label for member in bundle)
        given = [split for split, share in shares.items() if share]
        split = min(
            given, key=lambda own: (strain(own, labels), Fraction(n_placed[own], shares[own]))
        )
        for member in bundle:
            placed[split, member.label] += 1
            n_placed[split] += 1
            chosen[member.clip] = split
    return chosen


@given(
    st.lists(st.lists(st.sampled_from(["real", "generated"]), min_size=1, max_size=4), max_size=25),
    st.tuples(*[st.integers(0, 9)] * 3).filter(any),
    st.integers(0, 3),
)
def test_splits_in_whole_numbers_are_those_in_fractions(
    labels: list[list[str]], shares: tuple[int, int, int], seed: int
) -> None:
    bundles = [
        [
            SplitCandidate(
                clip=f"{digest(str(number))[:6]}-{at}", label=label, ties=(f"tie {number}",)
            )
            for at, label in enumerate(bundle)
        ]
        for number, bundle in enumerate(labels)
    ]
    by_split = dict(zip(("train", "val", "test"), shares, strict=True))
    members = [member for bundle in bundles for member in bundle]
    assert assign_splits(members, shares=by_split, seed=seed) == split_in_fractions(
        bundles, by_split, seed
    )


LENGTHS = st.fractions(min_value=Fraction(1, 9), max_value=9, max_denominator=9)


@given(
    st.dictionaries(st.text(min_size=1, max_size=4), LENGTHS, max_size=20),
    st.lists(LENGTHS, min_size=1, max_size=20),
)
def test_a_length_is_given_to_as_many_as_can_fill_one(
    real: dict[str, Fraction], wanted: list[Fraction]
) -> None:
    found = match_lengths(real, wanted, seed=3)
    targets = sorted(
        sorted(wanted)[(2 * place + 1) * len(wanted) // (2 * len(real))]
        for place in range(len(real))
    )
    # Longest first: the most that can be filled is what a greedy match fills.
    able = sorted(real.values())
    n_filled = 0
    for target in reversed(targets):
        if able and able[-1] >= target:
            able.pop()
            n_filled += 1
    trims = {name: length_s for name, length_s in found.items() if length_s is not None}
    assert len(trims) == n_filled
    assert not Counter(trims.values()) - Counter(targets)
    assert all(length_s <= real[name] for name, length_s in trims.items())
