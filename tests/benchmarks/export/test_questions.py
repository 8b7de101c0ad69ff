import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from unreel.benchmarks.entry import DeclaredFacts, Entry, Rejected, Row
from unreel.benchmarks.export.exported_question import (
    BenchmarkExportRecipe,
    ExportedQuestion,
    parse_exported_reply,
    parse_truths_json,
)
from unreel.benchmarks.export.question_writer import iter_exported_questions
from unreel.benchmarks.loader import Benchmark
from unreel.core.clip import Generated
from unreel.core.content_ids import compute_clip_id
from unreel.core.errors import UnknownNameError
from unreel.core.judgement import Pair
from unreel.core.verdict import Position
from unreel.media.reader import MediaReader

REALITY = BenchmarkExportRecipe(name="r", protocol="reality")
TRACE = BenchmarkExportRecipe(name="t", protocol="trace", box_space="pixel")
PREFERENCE = BenchmarkExportRecipe(name="p", protocol="preference")


def asked(
    benchmark: Benchmark, recipe: BenchmarkExportRecipe, reader: MediaReader
) -> list[ExportedQuestion]:
    return [
        q
        for q in iter_exported_questions(benchmark, recipe, reader=reader)
        if isinstance(q, ExportedQuestion)
    ]


def refused(
    benchmark: Benchmark, recipe: BenchmarkExportRecipe, reader: MediaReader
) -> dict[str, str]:
    rows = iter_exported_questions(benchmark, recipe, reader=reader)
    return {row.name: row.why for row in rows if isinstance(row, Rejected)}


def test_every_clip_is_asked_about_once_and_known_by_its_bytes(
    benchmark_: Benchmark, reader: MediaReader, root: Path
) -> None:
    items = asked(benchmark_, REALITY, reader)
    assert [item.id for item in items] == ["real/a", "real/b", "Veo/a", "Veo/b", "Sora/a"]
    assert items[0].subject == compute_clip_id(root / "real/a.mp4")
    assert [item.answer for item in items] == ["1", "1", "0", "0", "0"]


def test_only_the_split_that_is_named_is_asked_about(
    benchmark_: Benchmark, rows: list[Row], reader: MediaReader
) -> None:
    assert isinstance(rows[0], Entry)
    rows[0] = replace(rows[0], split="train")
    items = asked(benchmark_, replace(REALITY, split="test"), reader)
    assert "real/a" not in [item.id for item in items]
    assert len(items) == 4


@pytest.mark.parametrize("protocol", ["trace", "realism", "reality"])
def test_truths_survive_the_trip_through_a_row(
    protocol: str, benchmark_: Benchmark, rows: list[Row], reader: MediaReader
) -> None:
    recipe = BenchmarkExportRecipe(
        name="x", protocol=protocol, box_space="unit" if protocol == "trace" else None
    )
    items = asked(benchmark_, recipe, reader)
    for row, item in zip(rows, items, strict=True):
        assert isinstance(row, Entry)
        truths = parse_truths_json(recipe.protocol, item.truth)
        match protocol:
            case "trace":
                assert [truth.trace for truth in truths] == list(row.traces or (None,))
                assert {truth.label for truth in truths} == {row.label}
            case "realism":
                assert truths == (row.rating,)
            case _:
                assert truths == (row.origin,)


def test_size_and_duration_are_the_declared_ones_or_else_the_files(
    benchmark_: Benchmark, rows: list[Row], reader: MediaReader
) -> None:
    assert isinstance(rows[2], Entry)
    rows[2] = replace(rows[2], facts=DeclaredFacts(width=960, height=640, duration_us=2_000_000))
    real, declared = (asked(benchmark_, TRACE, reader)[i] for i in (0, 2))
    assert (real.width, real.height) == (96, 64)
    assert parse_truths_json(TRACE.protocol, real.truth)[0].duration_us == 1_000_000
    assert (declared.width, declared.height) == (960, 640)
    assert parse_truths_json(TRACE.protocol, declared.truth)[0].duration_us == 2_000_000
    said = "FAKE <coordinates>[96, 64, 480, 320]</coordinates>"
    box = parse_exported_reply(TRACE, declared, said).box
    assert (box.x0, box.y0, box.x1, box.y1) == (0.1, 0.1, 0.5, 0.5)


def test_what_cannot_be_asked_is_refused_with_its_reason(
    benchmark_: Benchmark, rows: list[Row], reader: MediaReader
) -> None:
    first, second = rows[0], rows[1]
    assert isinstance(first, Entry)
    assert isinstance(second, Entry)
    rows[0] = replace(first, location="https://example.org/a.mp4")
    rows[1] = replace(second, location="real/none.mp4", rating=None)
    rows.append(Rejected("row 6", "no label"))
    why = refused(benchmark_, REALITY, reader)
    assert set(why) == {"real/a", "real/b", "row 6"}
    assert "URL" in why["real/a"]
    assert "no file" in why["real/b"]


def test_realism_is_not_asked_of_clips_that_nobody_rated(
    benchmark_: Benchmark, rows: list[Row], reader: MediaReader
) -> None:
    assert isinstance(rows[0], Entry)
    rows[0] = replace(rows[0], rating=None)
    why = refused(benchmark_, BenchmarkExportRecipe(name="x", protocol="realism"), reader)
    assert set(why) == {"real/a"}
    assert "no rating" in why["real/a"]


def test_each_generated_clip_is_paired_with_the_real_clip_of_its_group(
    benchmark_: Benchmark, reader: MediaReader, root: Path
) -> None:
    items = asked(benchmark_, PREFERENCE, reader)
    assert len(items) == 3
    for item in items:
        subject = item.subject
        assert isinstance(subject, Pair)
        (real,) = parse_truths_json(PREFERENCE.protocol, item.truth)
        places = item.places
        shown_first = places[0].startswith("real/")
        assert shown_first is (real is Position.FIRST)
        assert item.answer == ("1" if shown_first else "2")
        assert [compute_clip_id(root / place) for place in places] == [
            subject.first,
            subject.second,
        ]
        assert len({Path(place).stem for place in places}) == 1


def test_the_order_in_pairs_is_balanced_and_follows_the_seed(
    benchmark_: Benchmark, reader: MediaReader
) -> None:
    orders = {
        seed: [item.answer for item in asked(benchmark_, replace(PREFERENCE, seed=seed), reader)]
        for seed in range(8)
    }
    assert orders[0] == [item.answer for item in asked(benchmark_, PREFERENCE, reader)]
    assert len({tuple(order) for order in orders.values()}) > 1
    assert all(set(Counter(order).values()) == {1, 2} for order in orders.values())


def test_clips_without_a_partner_are_refused(
    benchmark_: Benchmark, rows: list[Row], reader: MediaReader, root: Path
) -> None:
    changes = {0: {"group": ""}, 3: {"location": "real/b.mp4"}}
    for index, change in changes.items():
        row = rows[index]
        assert isinstance(row, Entry)
        rows[index] = replace(row, **change)  # type: ignore[arg-type]
    why = refused(benchmark_, PREFERENCE, reader)
    assert "no group" in why["real/a"]
    assert "no real clip" in why["Veo/a"]
    assert "other side" in why["Veo/b"]
    assert asked(benchmark_, PREFERENCE, reader) == []


def test_an_unknown_sampling_is_an_error_before_anything_is_read(
    benchmark_: Benchmark, reader: MediaReader
) -> None:
    with pytest.raises(UnknownNameError, match="uniform-N"):
        next(
            iter_exported_questions(benchmark_, replace(REALITY, sampling="some-8"), reader=reader)
        )


def test_the_origin_keeps_its_creator_and_setting(
    benchmark_: Benchmark, reader: MediaReader
) -> None:
    item = asked(benchmark_, REALITY, reader)[-1]
    assert parse_truths_json(REALITY.protocol, item.truth) == (Generated("Sora", "text"),)
    assert json.loads(item.truth) == [{"creator": "Sora", "setting": "text"}]
