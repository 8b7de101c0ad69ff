"""Campaign ready for publication: entries of the consensus, and the scores of the annotators as reviewers.

No annotator is compared with a truth that includes their own answers: if no answer was known
beforehand, the consensus of each clip is computed again without the measured annotator.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unreel.annotation.campaign import (
    VALUES,
    AnnotationInterface,
    AnnotationTask,
    AnyValue,
    Campaign,
    LedgerNotice,
    PassFailAnswer,
    PreferenceAnswer,
    RatingAnswer,
    ScreeningAnswer,
    TraceAnswer,
    Value,
    VoteAnswer,
)
from unreel.annotation.campaign_state import (
    CampaignRecords,
    compute_campaign_consensus,
    iter_valid_judgements,
)
from unreel.annotation.consensus.consensus import compute_consensus
from unreel.annotation.consensus.outcome import (
    AnnotatorOpinion,
    CampaignConsensus,
    ConsensusRule,
    SettledTask,
)
from unreel.annotation.quality import CampaignAgreement, measure_annotator_agreement
from unreel.annotation.rationale_polishing import PolishedRationale, read_confirmed_rationales
from unreel.benchmarks.entry import Entry, Rejected, Row
from unreel.benchmarks.human_scores import Against, AnnotatorScoreRow, build_human_score_row
from unreel.core.clip import get_first_creator, get_first_creator_setting
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Unmeasured
from unreel.core.judgement import Label, Rating, Vote, build_question_subject
from unreel.core.output_files import OutputDirectory
from unreel.core.trace import Trace
from unreel.core.verdict import (
    Position,
    PreferenceVerdict,
    RealismVerdict,
    RealityVerdict,
    TraceVerdict,
    Unparsed,
    UnparsedReason,
)
from unreel.protocols.preference import PREFERENCE
from unreel.protocols.protocol import Protocol, ScoredQuestion
from unreel.protocols.realism import REALISM
from unreel.protocols.realism_rubric import measure_trace_coverage
from unreel.protocols.reality import REALITY
from unreel.protocols.trace import TRACE
from unreel.protocols.trace.ground_truth import TraceTruth


def build_consensus_entry(
    entry: Entry, value: Value, answers: Mapping[str, Value], *, duration_us: int
) -> Row:
    """Return the benchmark entry with the consensus `value` as truth and the single `answers`.

    A clip that the consensus discards is rejected. The label real or generated remains the original
    one, whatever the consensus is.
    """
    votes = _collect_votes(answers)
    match value:
        case ScreeningAnswer(keep=False):
            return Rejected(entry.name, "annotators removed it")
        case RatingAnswer(rating=None):
            return Rejected(entry.name, "annotators discarded it for its quality")
        case TraceAnswer():
            traces = () if entry.label is Label.REAL else value.traces
            marked = [v.traces for v in answers.values() if isinstance(v, TraceAnswer)]
            return replace(
                entry,
                traces=traces,
                rating=rate_traces_by_rubric(traces, duration_us=duration_us),
                ratings=tuple(rate_traces_by_rubric(t, duration_us=duration_us) for t in marked),
                votes=votes,
            )
        case RatingAnswer():
            answered = [v.rating for v in answers.values() if isinstance(v, RatingAnswer)]
            ratings = tuple(rating for rating in answered if rating is not None)
            return replace(entry, rating=value.rating, ratings=ratings)
        case VoteAnswer():
            return replace(entry, votes=votes)
        case ScreeningAnswer() | PreferenceAnswer() | PassFailAnswer():
            return entry


def build_undecided_entry(entry: Entry, answers: Mapping[str, Value]) -> Entry:
    """Return the benchmark entry of a clip without consensus: only the annotators' votes are added."""
    votes = _collect_votes(answers)
    return replace(entry, votes=votes) if votes else entry


def has_traces_on_real_clip(entry: Entry, value: Value) -> bool:
    """Return whether the annotators' consensus has traces although the clip is real."""
    return isinstance(value, TraceAnswer) and bool(value.traces) and entry.label is Label.REAL


def rate_traces_by_rubric(traces: Sequence[Trace], *, duration_us: int) -> Rating:
    """Return the realism rating that the rubric gives for the area and duration of the traces."""
    coverage = measure_trace_coverage(traces, duration_us=duration_us)
    reasons = dict.fromkeys(trace.explanation for trace in traces if trace.explanation)
    return Rating(
        score=coverage.level,
        problem=" ".join(reasons),
        adherence=(
            f"{len(traces)} marked, over {100 * float(coverage.picture):.1f} % of the picture "
            f"and {100 * float(coverage.time):.1f} % of the time"
        ),
    )


def _collect_votes(answers: Mapping[str, Value]) -> tuple[Vote, ...]:
    return tuple(
        Vote(name, value.label)
        for name, value in answers.items()
        if isinstance(value, VoteAnswer | TraceAnswer) and value.label is not None
    )


_SILENT = Unparsed(UnparsedReason.MISSING, "")
_CANNOT_TELL = Unparsed(UnparsedReason.AMBIGUOUS, "cannot tell")
_DISCARDED = Unparsed(UnparsedReason.MISSING, "discarded")


def get_answer_label(value: AnyValue | None) -> Label | Unparsed:
    """Return the label, real or generated, of an annotator's answer; `Unparsed` if there is none."""
    if value is None:
        return Unparsed(UnparsedReason.AMBIGUOUS, "not settled")
    label = value.label if isinstance(value, TraceAnswer | VoteAnswer) else None
    return label if label is not None else _CANNOT_TELL


def to_trace_verdict(value: AnyValue | None) -> TraceVerdict:
    """Convert an annotator's answer to a verdict of `trace`, of its first trace only, as models give."""
    traces = value.traces if isinstance(value, TraceAnswer) else ()
    first = min(traces, key=lambda t: (t.span.start_us, t.span.end_us), default=None)
    return TraceVerdict(
        label=get_answer_label(value),
        box=first.track[0].box if first and first.track else _SILENT,
        start_us=first.span.start_us if first else _SILENT,
        explanation=(first.explanation if first else "") or _SILENT,
    )


def to_realism_verdict(rating: Rating | None) -> RealismVerdict:
    """Return the verdict of `realism` for a rating; without a rating, the verdict has no score."""
    if rating is None:
        return RealismVerdict(score=_DISCARDED, problem=_SILENT, adherence=_SILENT)
    return RealismVerdict(
        score=rating.score,
        problem=rating.problem or _SILENT,
        adherence=rating.adherence or _SILENT,
        family=rating.family,
    )


def get_answer_rating(value: AnyValue, *, duration_us: int) -> Rating | None:
    """Return an answer's realism rating, by the rubric for marked traces; `None` if it has none."""
    match value:
        case RatingAnswer():
            return value.rating
        case TraceAnswer():
            return rate_traces_by_rubric(value.traces, duration_us=duration_us)
        case _:
            return None


MAJORITY = "majority"
"""Name of the consensus of all annotators in the scores."""
Truths = Mapping[str, AnyValue]
"""Ground truth of tasks, by task id."""
Measuring = Callable[[AnnotationTask, AnyValue | None, AnyValue | None], Iterator[tuple[Any, Any]]]
"""Function that maps a task, its ground truth and an answer to pairs of truth and verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorScoringInput:
    """Input for scoring annotators: their judgements, the consensus and the judged clips."""

    interface: AnnotationInterface
    rule: ConsensusRule
    opinions: Sequence[AnnotatorOpinion]
    consensus: CampaignConsensus
    entries: Mapping[str, Entry]
    """Benchmark entries by name."""
    seed: int
    swapped: frozenset[tuple[str, str]] = frozenset()
    """Annotator and task id of each assignment whose second clip was shown on the left."""

    @property
    def annotators(self) -> list[str]:
        """Return the names of all annotators with a judgement, sorted."""
        return sorted({opinion.annotator for opinion in self.opinions})

    @property
    def tasks(self) -> list[AnnotationTask]:
        """Return the judged tasks whose clips are all in `entries`."""
        by_id = {o.task.id: o.task for o in self.opinions}
        return [t for t in by_id.values() if all(name in self.entries for name in t.names)]

    def answers_of(self, annotator: str) -> dict[str, AnyValue]:
        """Return the answers of `annotator` by task id."""
        return {o.task.id: o.value for o in self.opinions if o.annotator == annotator}


def score_annotators(scoring_input: AnnotatorScoringInput) -> tuple[AnnotatorScoreRow, ...]:
    """Compute the metrics of each annotator and of the majority, for each protocol that applies."""
    return tuple(
        row
        for measure in _INSTRUMENTS.get(scoring_input.interface, ())
        for row in measure(scoring_input)
    )


def compute_consensus_of_others(scoring_input: AnnotatorScoringInput, annotator: str) -> Truths:
    """Return the consensus of all others on the tasks that `annotator` judged, by task id.

    Tasks without such a consensus are omitted. Quorum and overlap are lowered to the number of
    others.
    """
    own_tasks = set(scoring_input.answers_of(annotator))
    others = [
        o for o in scoring_input.opinions if o.annotator != annotator and o.task.id in own_tasks
    ]
    counts: dict[str, int] = {}
    for opinion in others:
        counts[opinion.task.id] = counts.get(opinion.task.id, 0) + 1
    largest = max(counts.values(), default=1)
    rule = replace(
        scoring_input.rule,
        quorum=min(scoring_input.rule.quorum, largest),
        min_overlap=min(scoring_input.rule.min_overlap, largest),
        reviews=0,
    )
    consensus_by_task = compute_consensus(others, rule, interface=scoring_input.interface).settled
    return {task: task_result.value for task, task_result in consensus_by_task.items()}


def _iter_scores_against_truth(
    scoring_input: AnnotatorScoringInput, protocol: Protocol[Any, Any], measuring: Measuring
) -> Iterator[AnnotatorScoreRow]:
    """Yield the scores of each annotator and of the majority against known answers or the consensus.

    If all tasks have known answers, scores are against these. Otherwise each annotator is scored
    against the consensus of the others, and the majority only against the clips' origins, because
    it cannot be scored against itself.
    """
    known = {task.id: task.known for task in scoring_input.tasks if task.known is not None}
    is_known = bool(known) and len(known) == len(scoring_input.tasks)
    for who in (*scoring_input.annotators, None):
        against: Against = "known" if is_known else "origin" if who is None else "others"
        truths: Truths = known if is_known else {}
        if against == "others" and who is not None:
            truths = compute_consensus_of_others(scoring_input, who)
        yield from _iter_score_rows(
            scoring_input, protocol, who, truths, measuring, against=against
        )


def _iter_score_rows(
    scoring_input: AnnotatorScoringInput,
    protocol: Protocol[Any, Any],
    who: str | None,
    truths: Truths,
    measuring: Measuring,
    *,
    against: Against,
) -> Iterator[AnnotatorScoreRow]:
    """Yield the metrics of annotator `who` (the majority if `None`) as one row; nothing without answers."""
    values: Mapping[str, AnyValue] = (
        {id_: outcome.value for id_, outcome in scoring_input.consensus.settled.items()}
        if who is None
        else scoring_input.answers_of(who)
    )
    rows = []
    for task in scoring_input.tasks:
        if who is not None and task.id not in values:
            continue
        entries = [scoring_input.entries[name] for name in task.names]
        origins = [entry.origin for entry in entries]
        for truth, verdict in measuring(task, truths.get(task.id), values.get(task.id)):
            question: ScoredQuestion[Any, Any] = ScoredQuestion(
                subject=build_question_subject(*(copy.clip for copy in task.copies)),
                truth=truth,
                outcome=verdict,
                source=entries[0].group,
                creator=get_first_creator(*origins),
                setting=get_first_creator_setting(*origins),
                difficulty=entries[0].difficulty,
            )
            rows.append(question)
    if rows:
        card = protocol.score(rows, seed=scoring_input.seed)
        if who is None:
            row = build_human_score_row(MAJORITY, "majority", card, against=against)
        else:
            row = build_human_score_row(who, "annotator", card, against=against)
        yield replace(row, n_judged=len({str(r.subject) for r in rows}))


def _iter_reality_scores(scoring_input: AnnotatorScoringInput) -> Iterator[AnnotatorScoreRow]:
    def measuring(
        task: AnnotationTask, _: AnyValue | None, answer: AnyValue | None
    ) -> Iterator[tuple[Any, Any]]:
        origin = scoring_input.entries[task.names[0]].origin
        yield origin, RealityVerdict(label=get_answer_label(answer))

    for who in (*scoring_input.annotators, None):
        yield from _iter_score_rows(scoring_input, REALITY, who, {}, measuring, against="origin")


def _iter_preference_scores(scoring_input: AnnotatorScoringInput) -> Iterator[AnnotatorScoreRow]:
    """Yield preference scores of each annotator and of the majority, against the clips' origins.

    An annotator's pairs keep the order in which the annotator saw the clips. The majority has no
    scores by side, because people saw a pair in different orders.
    """
    for who in (*scoring_input.annotators, None):

        def measuring(
            task: AnnotationTask, _: AnyValue | None, answer: AnyValue | None, who: str | None = who
        ) -> Iterator[tuple[Any, Any]]:
            labels = [scoring_input.entries[name].label for name in task.names]
            if set(labels) != set(Label):
                return
            real = Position.FIRST if labels[0] is Label.REAL else Position.SECOND
            better: Position | Unparsed = Unparsed(UnparsedReason.AMBIGUOUS, "not settled")
            if isinstance(answer, PreferenceAnswer):
                better = answer.better
            if (who, task.id) in scoring_input.swapped:
                other = {Position.FIRST: Position.SECOND, Position.SECOND: Position.FIRST}
                real = other[real]
                better = other[better] if isinstance(better, Position) else better
            yield real, PreferenceVerdict(real=better)

        rows = _iter_score_rows(scoring_input, PREFERENCE, who, {}, measuring, against="origin")
        for row in rows:
            if who is None:
                reason = Unmeasured("people saw the pair in different orders")
                metrics = {n: row[n] if n.startswith("pooled") else reason for n in row.figures}
                yield replace(row, figures=metrics)
            else:
                yield row


def _iter_trace_scores(scoring_input: AnnotatorScoringInput) -> Iterator[AnnotatorScoreRow]:
    def measuring(
        task: AnnotationTask, truth: AnyValue | None, answer: AnyValue | None
    ) -> Iterator[tuple[Any, Any]]:
        label = scoring_input.entries[task.names[0]].label
        marked = truth.traces if isinstance(truth, TraceAnswer) and label is Label.GENERATED else ()
        for trace in marked or (None,):
            duration_us = task.copies[0].duration_us
            yield (
                TraceTruth(label=label, duration_us=duration_us, trace=trace),
                to_trace_verdict(answer),
            )

    return _iter_scores_against_truth(scoring_input, TRACE, measuring)


def _iter_realism_scores(scoring_input: AnnotatorScoringInput) -> Iterator[AnnotatorScoreRow]:
    def measuring(
        task: AnnotationTask, truth: AnyValue | None, answer: AnyValue | None
    ) -> Iterator[tuple[Any, Any]]:
        if truth is None or answer is None:
            return
        duration_us = task.copies[0].duration_us
        if (
            isinstance(truth, TraceAnswer)
            and scoring_input.entries[task.names[0]].label is Label.REAL
        ):
            truth = TraceAnswer(traces=(), label=Label.REAL)
        right = get_answer_rating(truth, duration_us=duration_us)
        if right is not None:
            yield right, to_realism_verdict(get_answer_rating(answer, duration_us=duration_us))

    return _iter_scores_against_truth(scoring_input, REALISM, measuring)


_INSTRUMENTS: Mapping[
    AnnotationInterface, tuple[Callable[[AnnotatorScoringInput], Iterator[AnnotatorScoreRow]], ...]
] = {
    AnnotationInterface.REALITY: (_iter_reality_scores,),
    AnnotationInterface.PREFERENCE: (_iter_preference_scores,),
    AnnotationInterface.TRACE: (_iter_trace_scores, _iter_reality_scores, _iter_realism_scores),
    AnnotationInterface.LOCATE: (_iter_reality_scores,),
    AnnotationInterface.REALISM: (_iter_realism_scores,),
}


_ORIGIN_TRUTH_INTERFACES = {AnnotationInterface.REALITY, AnnotationInterface.PASS_FAIL}
"""Interfaces whose answers do not become ground truth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishableCampaign:
    """Campaign with all published content: tasks, opinions, consensus, agreement and rationales."""

    campaign: Campaign
    tasks: Mapping[str, AnnotationTask]
    """All pushed tasks, by id."""
    opinions: Sequence[AnnotatorOpinion]
    """Newest judgement of each annotator on each task, without excluded annotators."""
    consensus: CampaignConsensus
    agreement: CampaignAgreement = field(default_factory=lambda: CampaignAgreement(overall={}))
    polished: Mapping[str, PolishedRationale] = field(default_factory=dict)
    """Rationales that a model merged and people confirmed, by task id."""
    n_quarantined: int = 0
    """Number of quarantined annotations."""
    n_excluded: int = 0
    """Number of excluded annotators."""
    swapped: frozenset[tuple[str, str]] = frozenset()
    """Annotator and task id of each assignment whose second clip was shown on the left."""
    keep_undecided: bool = False
    """Whether clips without a consensus are published with their original truth."""

    def __post_init__(self) -> None:
        interface = self.campaign.interface
        if self.keep_undecided and interface not in _ORIGIN_TRUTH_INTERFACES:
            raise InvalidSettingError(
                "--keep-undecided",
                f"for {interface.value} the ground truth is the consensus",
                "Leave it out, or lower --quorum",
            )

    @property
    def annotators(self) -> list[str]:
        """Return the names of all annotators with a valid judgement, sorted."""
        return sorted({opinion.annotator for opinion in self.opinions})

    def answers_by_task(self, aliases: Mapping[str, str]) -> dict[str, dict[str, AnyValue]]:
        """Return the annotators' answers by task id, then by the published name of the annotator."""
        answers: dict[str, dict[str, AnyValue]] = {}
        for opinion in sorted(self.opinions, key=lambda o: aliases[o.annotator]):
            answers.setdefault(opinion.task.id, {})[aliases[opinion.annotator]] = opinion.value
        return answers


def assign_annotator_aliases(
    annotators: Sequence[str], *, seed: int, named: bool
) -> dict[str, str]:
    """Return the published name of each annotator: the own name if `named`, else a random number."""
    if named:
        return {name: name for name in annotators}
    order = sorted(annotators)
    random.Random(seed).shuffle(order)  # noqa: S311  a lot, no secret: the ledger knows
    width = len(str(len(order)))
    return {name: f"annotator-{i:0{width}d}" for i, name in enumerate(order, start=1)}


def build_publishable_campaign(
    records: CampaignRecords,
    rule: ConsensusRule,
    *,
    notices: Sequence[LedgerNotice] = (),
    seed: int = 0,
) -> PublishableCampaign:
    """Build the campaign, its consensus by `rule` with confirmed polished texts, and its agreement."""
    interface = records.campaign.interface
    opinions = sorted(iter_valid_judgements(records), key=lambda o: (o.task.id, o.annotator))
    return PublishableCampaign(
        campaign=records.campaign,
        tasks=records.tasks,
        opinions=opinions,
        consensus=compute_campaign_consensus(records, rule),
        polished=read_confirmed_rationales(records, rule, notices),
        agreement=measure_annotator_agreement(opinions, interface=interface, seed=seed),
        n_quarantined=len(records.quarantined),
        n_excluded=len(records.excluded),
        swapped=frozenset(by for by, a in records.assignments.items() if a.swapped),
    )


def build_annotator_scoring_input(
    campaign: PublishableCampaign, entries: Mapping[str, Entry], *, seed: int
) -> AnnotatorScoringInput:
    """Build the input for scoring the annotators of a campaign; `entries` are its clips by name."""
    return AnnotatorScoringInput(
        interface=campaign.campaign.interface,
        rule=campaign.consensus.rule,
        opinions=campaign.opinions,
        consensus=campaign.consensus,
        entries=entries,
        seed=seed,
        swapped=campaign.swapped,
    )


CONSENSUS = "consensus.jsonl"
ANNOTATIONS = "annotations.jsonl"
REVIEWER = "reviewer"
"""Placeholder name for a person who decided but is not an annotator."""


def write_consensus_and_answers(
    directory: OutputDirectory, campaign: PublishableCampaign, aliases: Mapping[str, str]
) -> None:
    """Write two JSON Lines files: the consensus and dissent of each task, and all judgements."""

    def convert_to_json(value: AnyValue) -> Any:
        plain = VALUES.dump_python(value, mode="json")
        for trace in plain.get("traces", ()):
            trace["categories"].sort()  # sets have no order; sorted for reproducible files
        return plain

    with directory.create_text(CONSENSUS) as file:
        for task in campaign.tasks.values():
            outcome = campaign.consensus.tasks.get(task.id)
            row: dict[str, Any] = {"clips": list(task.names), "task": task.id, "settled": False}
            if outcome is None:
                row["why"] = "not-judged"
            elif not isinstance(outcome, SettledTask):
                row |= {"why": outcome.why.value, "detail": outcome.detail}
            else:
                author = outcome.words_of
                row |= {
                    "settled": True,
                    "value": convert_to_json(outcome.value),
                    "method": outcome.method.value,
                    "support": [aliases.get(name, REVIEWER) for name in outcome.support],
                    "dissent": [
                        {"annotator": aliases.get(name, REVIEWER), "value": convert_to_json(value)}
                        for name, value in outcome.dissent
                    ],
                    "words_of": aliases.get(author, REVIEWER) if author else "",
                }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    # Sorted by clip and alias: this order reveals neither identities nor times.
    opinions = sorted(campaign.opinions, key=lambda o: (o.task.names, aliases[o.annotator]))
    with directory.create_text(ANNOTATIONS) as file:
        for opinion in opinions:
            row = {
                "clips": list(opinion.task.names),
                "annotator": aliases[opinion.annotator],
                "value": convert_to_json(opinion.value),
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
