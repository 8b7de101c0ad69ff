"""Stage that asks a reviewer about a clip and stores the reply; counters of an evaluation."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from unreel.asking.answer_table import ESTIMATED, build_answer_columns, build_question_columns
from unreel.asking.asker import Asker
from unreel.benchmarks.entry import Entry, Rejected
from unreel.benchmarks.questions import PlannedQuestion, QuestionScope, UnreadableClip
from unreel.benchmarks.statistics import BenchmarkStats
from unreel.core.clip import Clip
from unreel.core.errors import InvalidSettingError, RequestsRejectedError
from unreel.core.failure import Failure, FailureReason
from unreel.core.judgement import build_question_subject
from unreel.core.question import Condition, Instrument, Question
from unreel.engine.clip_facts import FACTS
from unreel.engine.run import PrefetchedIterator
from unreel.engine.stage import MediaStage, Row, WorkerResources, convert_to_failed_row
from unreel.engine.storage_access import (
    ClipAccessSettings,
    find_clip_change,
    provide_local_clip_file,
)
from unreel.reviewers.factory import ReviewerFactory

_MOST_REJECTIONS = 8
"""Number of equal rejections, without an answer, after which a server is not asked further."""
_CONDITION = TypeAdapter(Condition)


def build_unanswered_row(planned: PlannedQuestion[Clip], reviewer: str) -> Row:
    """Return the row of a question before it is sent; columns that begin with `_` are not stored."""
    question = planned.question
    return {
        **build_question_columns(question, reviewer),
        "_condition": json.dumps(asdict(question.condition)),
        "_name": planned.name,
        "_locations": [clip.location for clip in planned.clips],
        "_facts": [FACTS.dump_json(clip.facts).decode() for clip in planned.clips],
    }


def add_row_costs(rows: Sequence[Row], totals: dict[str, float]) -> None:
    """Add the costs of `rows` to `totals`, and count the rows whose token usage is estimated."""
    for row in rows:
        if row.get("cost_usd") is not None:
            totals["cost_usd"] = totals.get("cost_usd", 0.0) + row["cost_usd"]
        if row.get("usage_estimated"):
            totals[ESTIMATED] = totals.get(ESTIMATED, 0.0) + 1


class ReviewStage(MediaStage):
    """Stage that sends the question of a row to a reviewer, and stores the answer with its inputs.

    Args:
        opener: Factory of the reviewer, called once in each worker; it must pickle.
        access: Access to clips.
        in_flight: Number of concurrent questions.
    """

    opened = MediaStage.opened | {"_asker", "_reviewer", "_rejections"}

    def __init__(
        self, factory: ReviewerFactory, access: ClipAccessSettings, *, in_flight: int
    ) -> None:
        super().__init__(access, WorkerResources.asking(factory, in_flight))
        self._opener = factory

    def setup(self) -> None:
        super().setup()
        self._asker = Asker(
            self._reader,
            open_file=partial(provide_local_clip_file, access=self._access),
            find_change=find_clip_change,
        )
        self._open.callback(self._asker.close)
        self._reviewer = self._opener.open()
        self._rejections: Counter[str] | None = Counter()
        """Rejections of questions by message, until the first answer."""

    async def __call__(self, row: Row) -> Row:
        clips = tuple(_iter_row_clips(row))
        question = Question(
            subject=build_question_subject(*(clip.id for clip in clips)),
            instrument=Instrument(row["protocol"], row["protocol_version"]),
            condition=_CONDITION.validate_json(row["_condition"]),
        )
        result = await self._asker.ask(question, clips, self._reviewer, name=row["_name"])
        answered = row | build_answer_columns(result, row.get("_paid"))
        if isinstance(result.outcome, Failure):
            self._require_some_acceptance(result.outcome)
            return convert_to_failed_row(answered, result.outcome)
        self._rejections = None
        return answered

    def _require_some_acceptance(self, failure: Failure) -> None:
        """Raise if a server rejected the first questions alike, because it would reject all."""
        by_server = failure.detail.startswith("status ")
        if self._rejections is None or not by_server:
            return
        self._rejections[failure.detail] += failure.reason is FailureReason.REQUEST_REJECTED
        if self._rejections[failure.detail] > _MOST_REJECTIONS:
            raise RequestsRejectedError(
                f"the first {_MOST_REJECTIONS} questions were rejected, so no more are sent ({failure.detail})",
                f"{failure.reason.remedy} Add --retry-failed to send these questions again",
            )

    async def close(self) -> None:
        await self._reviewer.reviewer.close()
        super().close()


def _iter_row_clips(row: Row) -> Iterator[Clip]:
    ids = [row["clip"]] if row["second"] is None else [row["clip"], row["second"]]
    for clip, location, facts in zip(ids, row["_locations"], row["_facts"], strict=True):
        yield Clip(id=clip, location=location, facts=FACTS.validate_json(facts))


class CountedEntryStream:
    """Iterator over the benchmark entries of a run that counts them.

    Args:
        entries: Entries, iterated once.
        keeps: Whether the entries stay in memory, for a fitted baseline.
    """

    def __init__(self, entries: Iterable[Entry], *, keeps: bool) -> None:
        self.ahead = PrefetchedIterator(entries)
        self.n_entries = 0
        self.has_cleaned = any(entry.cleaned for entry in self.ahead.first)
        """Whether an entry that was yielded or read ahead has a copy without its watermark."""
        self.kept: list[Entry] = []
        self._keeps = keeps

    def __iter__(self) -> Iterator[Entry]:
        for entry in self.ahead:
            self.n_entries += 1
            self.has_cleaned |= bool(entry.cleaned)
            if self._keeps:
                self.kept.append(entry)
            yield entry


class SkippedQuestionCounts:
    """Counts of questions that a run skips, by reason, collected while it plans its questions."""

    def __init__(self) -> None:
        self.unreadable: Counter[str] = Counter()
        self.first_unreadable = ""
        self.reading = BenchmarkStats()

    def sift(
        self, plan: Iterable[PlannedQuestion[Clip] | UnreadableClip | Rejected], reviewer: str
    ) -> Iterator[dict[str, Any]]:
        for planned in plan:
            if isinstance(planned, PlannedQuestion):
                yield build_unanswered_row(planned, reviewer)
            else:
                self.leave(planned)

    def leave(self, planned: UnreadableClip | Rejected) -> None:
        match planned:
            case UnreadableClip():
                self.unreadable[planned.failure.reason.value] += 1
                self.first_unreadable = (
                    self.first_unreadable or f"{planned.name}: {planned.failure}"
                )
            case Rejected():
                self.reading.reject(planned)


def require_watermark_free_copies(scope: QuestionScope, entries: CountedEntryStream) -> None:
    """Require a copy without watermark of at least one entry, if `watermark=removed` is requested."""
    if scope.shows_cleaned and not entries.has_cleaned:
        raise InvalidSettingError(
            "watermark",
            "no clip of the benchmark has a copy without its watermark",
            "Ask with watermark=kept, or name such copies in a column `cleaned`",
        )
