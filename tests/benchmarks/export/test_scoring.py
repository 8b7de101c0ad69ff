import pytest

from unreel.benchmarks.export.exported_question import (
    BenchmarkExportRecipe,
    ExportedQuestion,
    flatten_scorecard_metrics,
    list_exported_task_metrics,
    parse_exported_reply,
    score_exported_replies,
)
from unreel.benchmarks.export.question_writer import iter_exported_questions
from unreel.benchmarks.loader import Benchmark
from unreel.core.box import Box
from unreel.core.failure import Failure, FailureReason
from unreel.core.verdict import RealityVerdict, TraceVerdict, Unparsed
from unreel.media.reader import MediaReader
from unreel.protocols.protocol import get_protocol, list_protocol_names

RECIPES = {
    name: BenchmarkExportRecipe(
        name="x", protocol=name, box_space="pixel" if get_protocol(name).needs_box_space else None
    )
    for name in list_protocol_names()
}
GOOD = {
    "trace": "FAKE <coordinates>[24, 16, 72, 48]</coordinates> <start_time>0.25</start_time>",
    "realism": "<answer>3</answer>",
    "reality": "<answer>1</answer>",
    "preference": "1",
    "locate": '[{"start": 0, "end": 0.5}]',
}


def items_of(
    benchmark: Benchmark, recipe: BenchmarkExportRecipe, reader: MediaReader
) -> list[ExportedQuestion]:
    return [
        q
        for q in iter_exported_questions(benchmark, recipe, reader=reader)
        if isinstance(q, ExportedQuestion)
    ]


def test_boxes_are_read_in_the_declared_space(benchmark_: Benchmark, reader: MediaReader) -> None:
    recipe = RECIPES["trace"]
    verdict = parse_exported_reply(recipe, items_of(benchmark_, recipe, reader)[2], GOOD["trace"])
    assert isinstance(verdict, TraceVerdict)
    assert verdict.box == Box(0.25, 0.25, 0.75, 0.75)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", FailureReason.EMPTY_REPLY),
        (" \n", FailureReason.EMPTY_REPLY),
        ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] 429", FailureReason.SERVER_ERROR),
        ("Failed to obtain answer via API.", FailureReason.SERVER_ERROR),
    ],
)
def test_a_text_that_stands_for_no_reply_is_a_failure(
    text: str, reason: FailureReason, benchmark_: Benchmark, reader: MediaReader
) -> None:
    recipe = RECIPES["reality"]
    outcome = parse_exported_reply(recipe, items_of(benchmark_, recipe, reader)[0], text)
    assert isinstance(outcome, Failure)
    assert outcome.reason is reason


def test_a_reply_that_cannot_be_read_is_unparsed_and_no_failure(
    benchmark_: Benchmark, reader: MediaReader
) -> None:
    recipe = RECIPES["reality"]
    outcome = parse_exported_reply(
        recipe, items_of(benchmark_, recipe, reader)[0], "It looks real to me."
    )
    assert isinstance(outcome, RealityVerdict)
    assert isinstance(outcome.label, Unparsed)


@pytest.mark.parametrize("name", list_protocol_names())
def test_every_headline_is_a_figure_of_its_scorecard(
    name: str, benchmark_: Benchmark, reader: MediaReader
) -> None:
    recipe = RECIPES[name]
    items = items_of(benchmark_, recipe, reader)
    card = score_exported_replies(recipe, [(item, GOOD[name]) for item in items])
    assert set(get_protocol(name).figures.exported) <= {metric.name for metric in card.metrics}
    measured = set(flatten_scorecard_metrics(card)) & {
        figure for figure, _ in list_exported_task_metrics(name)
    }
    assert {"questions", "answered"} <= measured


@pytest.mark.parametrize("name", list_protocol_names())
def test_without_any_answer_there_are_counts_and_no_headline(
    name: str, benchmark_: Benchmark, reader: MediaReader
) -> None:
    recipe = RECIPES[name]
    items = items_of(benchmark_, recipe, reader)
    figures = flatten_scorecard_metrics(
        score_exported_replies(recipe, [(item, "") for item in items])
    )
    assert figures["questions"] == len(items)
    assert figures["answered"] == 0
    assert figures["failed: empty-reply"] == len(items)
    assert set(get_protocol(name).figures.exported).isdisjoint(figures)


def test_a_figure_carries_its_interval_its_n_and_its_coverage(
    benchmark_: Benchmark, reader: MediaReader
) -> None:
    recipe = RECIPES["reality"]
    items = items_of(benchmark_, recipe, reader)
    replies = ["<answer>1</answer>", "hm", "<answer>0</answer>", "<answer>1</answer>", ""]
    figures = flatten_scorecard_metrics(
        score_exported_replies(recipe, zip(items, replies, strict=True))
    )
    assert figures["fake-accuracy"] == 50
    assert figures["fake-accuracy (low)"] < 50 < figures["fake-accuracy (high)"]
    assert figures["fake-accuracy (n)"] == 2
    assert (figures["real-accuracy (parsed)"], figures["real-accuracy (asked)"]) == (1, 2)
    assert figures["unread: label: missing"] == 1
    assert figures["failed: empty-reply"] == 1
