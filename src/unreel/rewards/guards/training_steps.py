"""Training steps in a reward log; each step is summarised when later steps have begun."""

import base64
import binascii
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unreel.media.fingerprint import HASH_WORDS
from unreel.media.messages import N_PICKED
from unreel.media.near_duplicates import MAX_BITS

LogRow = Mapping[str, Any]
"""One line of the log of `unreel reward serve`."""
FACTS = {
    "motion": ("motion", 1.0),
    "saturation": ("saturation", 0.02),
    "sharpness": ("sharpness", 0.5),
    "duration": ("duration_s", 0.1),
    "static": ("static_fraction", 0.05),
}
"""Measured fact of each guard, and the minimum standard deviation in which its drift is measured, so that equal
clips do not give an infinite drift."""
BLOCK_ROWS = 64
"""Number of rows per step in a log whose rows name no step."""
_MIN_GROUP_SIZE = 2
_OPEN_STEPS = 4
"""Number of newest steps that may still get rows, and facts that a service logs after the reply."""
_JUDGED = r"(?:video|clip|footage|movie|film|image|picture|scene)"
_REAL = r"(?:100)?(?:real|authentic|genuine|realistic|notai|notfake|notgenerated|human)"
_PATTERNS = (
    r"(?:ignore|disregard|forget)(?:all|any|the|your|my)*(?:previous|prior|above|earlier)?instructions?",
    rf"(?:this|the|following){_JUDGED}(?:is|was|looks|mustbe)(?:completely|totally|very|100)?{_REAL}",
    r"not(?:an)?(?:ai|computer|machine)generated",
    rf"(?:rate|score|grade|judge|label|classify|mark)(?:this|it|the|me)+{_JUDGED}?",
    r"(?:realism|quality|real)(?:score|rating)(?:is|of)?(?:5|10|100|high|max|perfect)",
    rf"(?:answer|respond|reply|output|verdict|label|prediction)(?:with|is|as|only)*{_REAL}",
    r"(?:dear|attention|note(?:to)?|hello)(?:the)?(?:judge|reviewer|evaluator|grader|annotator|assistant|model)",
    r"(?:you|judges?|reviewers?)(?:must|should|will)(?:say|answer|rate|score|give|call)",
    r"givehigh(?:est)?(?:score|rating|reward)|(?:score|rating|reward)(?:maximum|highest|perfect)",
    r"systemprompt|asanai|promptinjection",
)
"""Patterns of texts that address the judge, without spaces and punctuation, which text recognition often loses."""
_ADDRESSES = re.compile("|".join(_PATTERNS))


@dataclass(frozen=True, slots=True)
class StepFactSummary:
    """Count, mean and sum of squared deviations of one clip fact in one training step."""

    n: int
    mean: float
    squares: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStepSummary:
    """Numbers of one training step that the guards need: mean rewards, facts and counts."""

    step: int
    n_paired: int = 0
    """Number of rows with a trained and a held-out reward."""
    value: float | None = None
    """Mean trained reward of these rows."""
    held_out: float | None = None
    facts: Mapping[str, StepFactSummary] = field(default_factory=dict)
    counts: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    """Number of counted items and of all items, by the guard of their fraction."""


def summarise_training_step(step: int, rows: Sequence[LogRow]) -> TrainingStepSummary:
    """Summarise the log rows of one training step; repeated requests for a clip count once."""
    items = list(_iter_distinct_rows(row for row in rows if not row.get("canary")))
    values = [_parse_finite_number(row.get("value")) for row in items]
    paired = [
        (value, held_out)
        for row, value in zip(items, values, strict=True)
        if value is not None and (held_out := _parse_finite_number(row.get("held_out"))) is not None
    ]
    groups: dict[Any, list[float]] = {}
    for row, value in zip(items, values, strict=True):
        if value is not None:
            groups.setdefault(row.get("group"), []).append(value)
    large = [group for group in groups.values() if len(group) >= _MIN_GROUP_SIZE]
    facts = [row.get("facts") or {} for row in items]
    texts = [text for each in facts if isinstance(text := each.get("text"), str)]
    prints = [text for each in facts if isinstance(text := each.get("fingerprint"), str)]
    canaries = list(_iter_canary_pairs(rows))
    means = np.mean(paired, axis=0).tolist() if paired else (None, None)
    return TrainingStepSummary(
        step=step,
        n_paired=len(paired),
        value=means[0],
        held_out=means[1],
        facts={
            name: summary
            for name, (key, _) in FACTS.items()
            if (summary := _summarise_fact(facts, key))
        },
        counts={
            "text": (sum(map(is_text_for_judge, texts)), len(texts)),
            "duplicates": (count_duplicate_clips(prints), len(prints)),
            "canaries": (
                sum((one >= other) - 0.5 * (one == other) for one, other in canaries),
                len(canaries),
            ),
            "identical": (sum(len(set(group)) == 1 for group in large), len(large)),
            "nulls": (values.count(None), len(values)),
        },
    )


def is_text_for_judge(text: str) -> bool:
    """Return whether text in a picture addresses the judge: a request, a verdict or instructions."""
    return _ADDRESSES.search(re.sub(r"[^a-z0-9]", "", text.lower())) is not None


def count_duplicate_clips(fingerprints: Sequence[str]) -> int:
    """Count clips that repeat an earlier one: median hashes within `MAX_BITS` of 256 bits."""
    decoded = [each for each in map(_decode_fingerprint, fingerprints) if each is not None]
    if not decoded:
        return 0
    hashes = np.stack(decoded)
    n_repeats = 0
    for index in range(1, len(hashes)):
        earlier = hashes[:index]
        distances = np.bitwise_count(earlier ^ hashes[index]).sum(axis=-1, dtype=np.uint16)
        n_repeats += bool((np.median(distances, axis=-1) <= MAX_BITS).any())
    return n_repeats


def _decode_fingerprint(text: str) -> NDArray[np.uint64] | None:
    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None
    if len(data) != N_PICKED * HASH_WORDS * 8:
        return None
    return np.frombuffer(data, "<u8").reshape(N_PICKED, HASH_WORDS)


class TrainingStepCollector:
    """Collector of log rows that summarises each training step; the newest step is omitted."""

    def __init__(self) -> None:
        self.closed: list[TrainingStepSummary] = []
        self.n_late = 0
        """Number of rows that arrived after their step was summarised."""
        self._open: dict[int, list[dict[str, Any]]] = {}
        self._not_measured: dict[str, list[dict[str, Any]]] = {}
        """Rows of open steps by their reward id, until its facts follow in the log."""
        self._n_unnamed = 0

    def add(self, rows: Iterable[LogRow]) -> None:
        """Add log rows, in the order of the log."""
        for row in map(dict, rows):
            reward_id, step = str(row.get("measured") or row.get("reward_id")), row.get("step")
            if "measured" in row:
                for each in self._not_measured.pop(reward_id, ()):
                    each |= {name: row.get(name) for name in ("facts", "held_out")}
                continue
            if not isinstance(step, int):
                step = self._n_unnamed // BLOCK_ROWS
                self._n_unnamed += not row.get("canary")
            if self.closed and step <= self.closed[-1].step:
                self.n_late += 1
                continue
            self._open.setdefault(step, []).append(row)
            if row.get("facts") is None and row.get("value") is not None:
                self._not_measured.setdefault(reward_id, []).append(row)
            if len(self._open) > _OPEN_STEPS:
                oldest = min(self._open)
                ended = self._open.pop(oldest)
                self.closed.append(summarise_training_step(oldest, ended))
                for each in ended:
                    self._not_measured.pop(str(each.get("reward_id")), None)

    @property
    def n_complete(self) -> int:
        """Return the number of training steps without the newest, which may be incomplete."""
        return len(self.closed) + max(0, len(self._open) - 1)

    def finish(self) -> list[TrainingStepSummary]:
        """Return the summaries of all training steps but the newest, which may be incomplete."""
        open_steps = sorted(self._open)[:-1]
        return [
            *self.closed,
            *(summarise_training_step(step, self._open[step]) for step in open_steps),
        ]


def iter_reward_log_rows(path: Path) -> Iterator[LogRow]:
    """Yield the rows of the reward log at `path`, in order."""
    with path.open("rb") as file:
        yield from filter(None, map(parse_reward_log_line, file))


def parse_reward_log_line(line: bytes) -> LogRow | None:
    """Parse one line of a reward log; `None` if it is no JSON object, such as a line that was cut off."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _iter_distinct_rows(rows: Iterable[LogRow]) -> Iterator[LogRow]:
    seen = set()
    for row in rows:
        content = row.get("content")
        if not (row.get("cached") and content in seen):
            yield row
        seen.add(content)


def _iter_canary_pairs(rows: Iterable[LogRow]) -> Iterator[tuple[float, float]]:
    """Yield the rewards of the injected and the clean canary of each pair; a pair shares a `group`."""
    pairs: dict[Any, dict[Any, float | None]] = {}
    for row in rows:
        if row.get("canary"):
            pair = pairs.setdefault(row.get("group"), {})
            pair[row["canary"]] = _parse_finite_number(row.get("value"))
    for pair in pairs.values():
        injected, clean = pair.get("injected"), pair.get("clean")
        if injected is not None and clean is not None:
            yield injected, clean


def _summarise_fact(facts: Sequence[Mapping[str, Any]], key: str) -> StepFactSummary | None:
    values = [value for each in facts if (value := _parse_finite_number(each.get(key))) is not None]
    if not values:
        return None
    return StepFactSummary(len(values), float(np.mean(values)), float(np.var(values) * len(values)))


def _parse_finite_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
