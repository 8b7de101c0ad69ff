"""Rows of every instrument drawn from a seed, in the shapes that decide how an interval is made."""

import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

from unreel.core.box import Box
from unreel.core.clip import ClipId, Generated, Real
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import ErrorFamily, Label, Pair, Rating
from unreel.core.span import TimeSpan
from unreel.core.trace import BoxAt, Category, Trace
from unreel.core.verdict import (
    LocatedSegment,
    LocateVerdict,
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    UnparsedReason,
)
from unreel.protocols.locate.ground_truth import LocateTruth
from unreel.protocols.protocol import ScoredQuestion
from unreel.protocols.trace.ground_truth import TraceTruth

Rows = list[ScoredQuestion[Any, Any]]
SHAPES = {
    "alone": {"n_creators": 3},
    "many creators": {"n_creators": 8},
    "scenes": {"n_creators": 3, "n_scenes": 40},
    "scenes and creators": {"n_creators": 8, "n_scenes": 40},
    "parts": {"n_creators": 2, "settings": True, "difficulties": True},
}
"""By name, what `draw_rows` is given beside the instrument."""
_GAP: Any = Unparsed(UnparsedReason.MISSING)


def draw_rows(
    instrument: str,
    n: int,
    *,
    n_creators: int,
    n_scenes: int = 0,
    settings: bool = False,
    difficulties: bool = False,
) -> Rows:
    """`n` questions of `instrument`, some of them failed and some unreadable."""
    rng = random.Random(f"{instrument} {n} {n_creators} {n_scenes}")
    rows: Rows = []
    for place in range(n):
        creator = rng.choice(["", *(f"creator {i}" for i in range(n_creators))])
        setting = rng.choice(["text", "image"]) if settings and creator else ""
        about = {
            "source": f"scene {rng.randrange(n_scenes)}" if n_scenes else "",
            "difficulty": rng.choice(["easy", "hard"]) if difficulties else "",
            "creator": creator,
            "setting": setting,
        }
        for subject, truth, outcome, more in _DRAWN[instrument](rng, place, creator, setting):
            rows.append(
                ScoredQuestion(subject=subject, truth=truth, outcome=outcome, **about, **more)
            )
    return rows


Drawn = Iterator[tuple[ClipId | Pair, Any, Any, dict[str, Any]]]


def _clip(place: int, side: str = "clip") -> ClipId:
    return ClipId(sha256(f"{side} {place}".encode()).hexdigest())


def _lost(rng: random.Random) -> Failure | None:
    reason = rng.choice([FailureReason.SERVER_ERROR, FailureReason.RATE_LIMITED])
    return Failure(reason, f"try {rng.randrange(99)}") if rng.random() < 0.06 else None


def _reality(rng: random.Random, place: int, creator: str, setting: str) -> Drawn:
    truth = Generated(creator, setting) if creator else Real()
    right = Label.GENERATED if creator else Label.REAL
    wrong = Label.REAL if creator else Label.GENERATED
    label = rng.choices([right, wrong, _GAP], [7, 3, 1])[0]
    sure = rng.choice([50.0, 66.6, 80.0, 97.25, 100.0, _GAP])
    said = RealityVerdict(label=label, confidence=sure if place % 2 else None)
    yield _clip(place), truth, _lost(rng) or said, {}


def _realism(rng: random.Random, place: int, _creator: str, _setting: str) -> Drawn:
    score = rng.randint(1, 5)
    family = rng.choice([None, *ErrorFamily])
    truth = Rating(score=score, problem="it bends", family=family)
    told = min(5, max(1, score + rng.choice([-1, 0, 0, 1, 2])))
    said = RealismVerdict(
        score=rng.choices([told, _GAP], [9, 1])[0],
        problem="it bends",
        adherence=_GAP,
        family=rng.choice([*ErrorFamily, _GAP]),
    )
    yield _clip(place), truth, _lost(rng) or said, {"text_score": rng.choice([None, 0.25, 0.75])}


def _preference(rng: random.Random, place: int, _creator: str, _setting: str) -> Drawn:
    truth = rng.choice([*Position])
    said = PreferenceVerdict(real=rng.choices([truth, *Position, _GAP], [3, 1, 1, 1])[0])
    yield Pair(_clip(place), _clip(place % 50, "other")), truth, _lost(rng) or said, {}


def _trace(rng: random.Random, place: int, creator: str, _setting: str) -> Drawn:
    label = Label.GENERATED if creator else Label.REAL
    box = Box(0.1, 0.1, 0.1 + rng.random() * 0.8, 0.9)
    said = TraceVerdict(
        label=rng.choice([*Label, label, label, _GAP]),
        box=rng.choice([box, Box(0, 0, 1, 1), _GAP]),
        start_us=rng.choice([rng.randrange(1_000_000), _GAP]),
        explanation=rng.choice(["it bends", _GAP]),
    )
    outcome = _lost(rng) or said
    for _ in range(rng.randint(1, 3) if creator else 1):
        start = rng.randrange(900_000)
        mark = Trace(
            span=TimeSpan(start, start + 1000),
            track=(BoxAt(start, Box(0.2, 0.2, 0.2 + rng.random() * 0.7, 0.8)),),
            categories=frozenset({Category.OTHER}),
            explanation=rng.choice(["", "why"]),
        )
        truth = TraceTruth(label=label, duration_us=1_000_000, trace=mark if creator else None)
        judged = rng.choice([None, 0.0, 0.5, 1.0])
        yield _clip(place), truth, outcome, {"text_score": judged}


def _locate(rng: random.Random, place: int, creator: str, _setting: str) -> Drawn:
    def segment(box: Box) -> Trace:
        start = rng.randrange(900_000)
        return Trace(
            span=TimeSpan(start, start + rng.randrange(1000, 400_000)),
            track=(BoxAt(start, box),) if rng.random() < 0.8 else (),
            categories=frozenset({rng.choice([*Category])}),
        )

    marked = tuple(segment(Box(0.2, 0.2, 0.8, 0.8)) for _ in range(rng.randint(1, 3)))
    marked = marked if creator else ()
    near = [LocatedSegment(trace, rng.random()) for trace in marked if rng.random() < 0.5]
    more = [LocatedSegment(segment(Box(0, 0, 0.6, 0.6)), rng.random()) for _ in range(place % 3)]
    said = LocateVerdict(segments=rng.choice([(*near, *more), (*more, *near), (), _GAP]))
    truth = LocateTruth(traces=marked, duration_us=1_000_000)
    yield _clip(place), truth, _lost(rng) or said, {}


_DRAWN: dict[str, Callable[[random.Random, int, str, str], Drawn]] = {
    "reality": _reality,
    "realism": _realism,
    "preference": _preference,
    "trace": _trace,
    "locate": _locate,
}
INSTRUMENTS = tuple(_DRAWN)
