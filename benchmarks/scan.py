"""Recall of a search in windows against uniform sampling, with the same number of frames.

    python benchmarks/scan.py                       # the table of docs/locate.md
    python benchmarks/scan.py --questions 12 24 48 --json

60 long videos with known faults are simulated; no pixel is drawn. The reviewer is an oracle with one limit: it
sees a fault only if a frame of it is shown, and reports half a frame's distance around the frames that it
saw. A share of its answers about windows is lost, if asked for.
"""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Sequence
from typing import Any

from unreel.core.clip import ClipId
from unreel.core.estimate import Estimate
from unreel.core.span import TimeSpan
from unreel.core.trace import Trace
from unreel.core.verdict import LocatedSegment, LocateVerdict
from unreel.evaluation.long_clip_review import Segments, WindowSearchLimits, search_clip_windows
from unreel.protocols.locate.ground_truth import LocateTruth
from unreel.protocols.protocol import ScoredQuestion, get_protocol
from unreel.stats.bootstrap import bootstrap_mean

VIDEOS = 60
MINUTES = (2, 10)
N_FRAMES = 8


def draw_video(rng: random.Random, fault_s: Sequence[float]) -> LocateTruth:
    """A video of two to ten minutes; one of five is clean, the others have one to three faults."""
    duration_us = int(rng.uniform(*MINUTES) * 60e6)
    traces: list[Trace] = []
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        length = int(rng.uniform(*fault_s) * 1e6)
        start = rng.randrange(duration_us - length)
        span = TimeSpan(start, start + length)
        if all(span.overlap_us(other.span) == 0 for other in traces):
            traces.append(Trace(span=span))
    return LocateTruth(traces=tuple(sorted(traces, key=lambda t: t.span)), duration_us=duration_us)


def see(truth: LocateTruth, span: TimeSpan, n_frames: int) -> Segments:
    """Return what the oracle reports of frames in the middle of `n_frames` equal parts of the window."""
    step = span.length_us / n_frames
    instants = [span.start_us + (place + 0.5) * step for place in range(n_frames)]
    found: list[LocatedSegment] = []
    for trace in truth.traces:
        seen = [at for at in instants if trace.span.start_us <= at < trace.span.end_us]
        if seen:
            start = max(span.start_us, int(seen[0] - step / 2))
            end = min(span.end_us, int(seen[-1] + step / 2))
            found.append(LocatedSegment(Trace(span=TimeSpan(start, end)), 0.9))
    return tuple(found)


def search(
    truth: LocateTruth, n_questions: int, rng: random.Random, lost: float
) -> tuple[Segments, int]:
    """Return the segments and the number of questions of a search in windows."""

    async def ask(span: TimeSpan) -> Segments | None:
        return None if rng.random() < lost else see(truth, span, N_FRAMES)

    settings = WindowSearchLimits(n_questions=n_questions, n_frames=N_FRAMES)
    result = asyncio.run(search_clip_windows(truth.duration_us or 1, ask, settings))
    return result.segments, len(result.windows)


def score(truths: Sequence[LocateTruth], answers: Sequence[Segments]) -> dict[str, Any]:
    rows = [
        ScoredQuestion(
            subject=ClipId(f"{place}"), truth=truth, outcome=LocateVerdict(segments=segments)
        )
        for place, (truth, segments) in enumerate(zip(truths, answers, strict=True))
    ]
    card = get_protocol("locate").score(rows, seed=0)
    return {name: card[name] for name in ("recall-0.5", "mean-tiou", "segment-f1")}


def compare(
    n_questions: int, *, seed: int, lost: float, fault_s: Sequence[float]
) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    truths = [draw_video(rng, fault_s) for _ in range(VIDEOS)]
    hours = sum(truth.duration_us or 0 for truth in truths) / 3.6e9
    searched = [search(truth, n_questions, rng, lost) for truth in truths]
    answers = {"scan": [segments for segments, _ in searched]}
    # As many frames as the search was shown, for each video, in one look at the whole of it.
    answers["uniform"] = [
        see(truth, TimeSpan(0, truth.duration_us or 1), n * N_FRAMES)
        for truth, (_, n) in zip(truths, searched, strict=True)
    ]
    answers["one question"] = [
        see(truth, TimeSpan(0, truth.duration_us or 1), N_FRAMES) for truth in truths
    ]
    asked = sum(n for _, n in searched)
    questions = {"scan": asked, "uniform": VIDEOS, "one question": VIDEOS}
    frames = {"scan": asked, "uniform": asked, "one question": VIDEOS}
    rows = [
        {
            "questions": n_questions,
            "strategy": name,
            "per hour": f"{questions[name] / hours:.0f}, {frames[name] * N_FRAMES / hours:.0f}",
            **score(truths, found),
        }
        for name, found in answers.items()
    ]
    gain = contrast(truths, answers["scan"], answers["uniform"])
    return [
        *rows,
        {"questions": n_questions, "strategy": "scan less uniform", "per hour": "", **gain},
    ]


def contrast(
    truths: Sequence[LocateTruth], one: Sequence[Segments], other: Sequence[Segments]
) -> dict[str, Any]:
    """Return the differences over marked segments, in percentage points, resampled by video."""

    def best(answers: Sequence[Segments]) -> list[tuple[int, float]]:
        return [
            (place, max((s.trace.span.iou(trace.span) for s in segments), default=0.0))
            for place, (truth, segments) in enumerate(zip(truths, answers, strict=True))
            for trace in truth.traces
        ]

    pairs = list(zip(best(one), best(other), strict=True))
    videos = [str(place) for (place, _), _ in pairs]
    differences = {
        "recall-0.5": [100.0 * ((a >= 0.5) - (b >= 0.5)) for (_, a), (_, b) in pairs],
        "mean-tiou": [100 * (a - b) for (_, a), (_, b) in pairs],
    }
    return {
        name: bootstrap_mean(values, seed=0, clusters=videos, bounds=(-100, 100))
        for name, values in differences.items()
    }


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, nargs="+", default=[12, 24, 48])
    parser.add_argument("--lost", type=float, default=0.0, help="share of answers that fail")
    parser.add_argument(
        "--faults", type=float, nargs=2, default=[2, 12], help="seconds, from and to"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    ways = {"seed": chosen.seed, "lost": chosen.lost, "fault_s": chosen.faults}
    rows = [row for n in chosen.questions for row in compare(n, **ways)]
    if chosen.json:
        print(json.dumps(rows, default=str))
        return
    print(
        "| questions | strategy | recall at tIoU 0.5 | mean tIoU | segment F1 | questions, frames per hour |"
    )
    print("|---|---|---|---|---|---|")
    for row in rows:
        figures = [_format(row.get(name)) for name in ("recall-0.5", "mean-tiou", "segment-f1")]
        print(
            "|",
            " | ".join([str(row["questions"]), row["strategy"], *figures, row["per hour"]]),
            "|",
        )


def _format(value: object) -> str:
    if not isinstance(value, Estimate):
        return ""
    return f"{value.value:.1f} ({value.low:.1f} to {value.high:.1f})"


if __name__ == "__main__":
    main(sys.argv[1:])
