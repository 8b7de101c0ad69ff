"""Passport from the stored answers of runs about real footage."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from unreel.benchmarks.questions import PlannedQuestion
from unreel.core.clip import Clip
from unreel.core.errors import InvalidSettingError
from unreel.core.failure import Failure
from unreel.core.judgement import Label
from unreel.core.question import Condition
from unreel.core.verdict import Unparsed, Verdict
from unreel.evaluation.passport import (
    FalseAlarmPassport,
    FootageCell,
    ReviewerPassport,
    get_duration_us,
    get_size_class,
    measure_oddness,
)
from unreel.evaluation.run_job import EvalRun
from unreel.evaluation.scoring import iter_questions_with_answers, parse_stored_answer
from unreel.protocols.protocol import Mode, get_protocol


def build_passport(
    runs: Sequence[EvalRun], *, mode: Mode, archive: str, made_at: datetime
) -> FalseAlarmPassport:
    """Build the passport from the stored answers of `runs`, which asked about the same archive."""
    clips: dict[str, Clip] = {}
    repeated: set[str] = set()
    reviewers = []
    for run in runs:
        answers: dict[Condition, dict[str, tuple[Clip, str, Verdict | None]]] = defaultdict(dict)
        for planned, answer in iter_questions_with_answers(replace(run)):
            if not isinstance(planned, PlannedQuestion) or answer is None:
                continue
            clip = planned.clips[0]
            clips.setdefault(clip.id, clip)
            of_condition = answers[planned.question.condition]
            if clip.id in of_condition:
                repeated.add(planned.name)
                continue
            outcome = parse_stored_answer(planned, answer, mode=mode)
            verdict = None if isinstance(outcome, Failure) else outcome
            of_condition[clip.id] = (clip, planned.source, verdict)
        for condition, rows in answers.items():
            reviewers.append(_count_answers(run, condition, rows.values(), mode))
    if not clips:
        raise InvalidSettingError(
            "ARCHIVE", "no clip of it has an answer", "Look at the failures: unreel runs list"
        )
    sides = [min(clip.size) for clip in clips.values()]
    durations = [get_duration_us(clip) for clip in clips.values()]
    return FalseAlarmPassport(
        archive=archive,
        made_at=made_at.isoformat(timespec="seconds"),
        n_clips=len(clips),
        n_repeated=len(repeated),
        codecs=tuple(sorted({clip.facts.video.codec for clip in clips.values()})),
        shorter_sides=(min(sides), max(sides)),
        durations_us=(min(durations), max(durations)),
        reviewers=tuple(reviewers),
    )


def _count_answers(
    run: EvalRun, condition: Condition, rows: Iterable[tuple[Clip, str, Verdict | None]], mode: Mode
) -> ReviewerPassport:
    wording = get_protocol(run.scope.instrument.protocol).wording
    n_clips: Counter[tuple[str, str, str]] = Counter()
    n_alarms: Counter[tuple[str, str, str]] = Counter()
    oddness: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    n_unanswered = 0
    for clip, source, verdict in rows:
        decision = None if verdict is None else wording.decision(verdict)
        if verdict is None or isinstance(decision, Unparsed):
            n_unanswered += 1
            continue
        cell = (clip.facts.video.codec, get_size_class(clip), source)
        n_clips[cell] += 1
        n_alarms[cell] += decision is Label.GENERATED
        score = measure_oddness(verdict)
        if score is not None:
            oddness[cell].append(score)
    return ReviewerPassport(
        reviewer=run.reviewer_name(),
        instrument=str(run.scope.instrument),
        condition=dict(condition.written()),  # type: ignore[arg-type]
        parser=mode,
        has_label=wording.decides == "label",
        n_unanswered=n_unanswered,
        cells=tuple(
            FootageCell(
                codec=codec,
                size=size,
                source=source,
                n=n_clips[codec, size, source],
                n_alarms=n_alarms[codec, size, source],
                oddness=tuple(sorted(oddness[codec, size, source])),
            )
            for codec, size, source in sorted(n_clips)
        ),
    )
