"""Annotation campaigns: the ledger of judgements, and what they add up to.

Each function with settings is a command of `unreel annotate`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict, Unpack

from unreel.api.shared_settings import LayoutSettings
from unreel.core.command_options import ARGUMENT, FOLDER, NEW_FILE, POSITIVE, Option
from unreel.core.errors import InvalidSettingError, UnknownNameError, UnreelError
from unreel.core.registry import needs_extra
from unreel.core.safe_text import sanitise_line
from unreel.core.settings import read_environment_settings

if TYPE_CHECKING:
    from unreel.annotation.campaign import (
        AnnotationTask,
        AnnotatorJudgement,
        AnyValue,
        LedgerNotice,
    )
    from unreel.annotation.campaign_page import CampaignPageResult
    from unreel.annotation.campaign_state import (
        AnnotatorExclusionEffect,
        CampaignProgress,
        CampaignRecords,
    )
    from unreel.annotation.consensus.outcome import CampaignConsensus, ConsensusRule, Outcome
    from unreel.annotation.ledger.ledger import Ledger
    from unreel.annotation.pairs import ClipRanking, NamePair
    from unreel.annotation.publishing.publish import PublicationResult
    from unreel.annotation.quality import CampaignAgreement, CampaignQuality
    from unreel.annotation.rationale_polishing import (
        OriginalRationales,
        PolishedText,
        RationalePolishFailure,
    )
    from unreel.benchmarks.human_scores import AnnotatorScoreRow


class RuleKeys(TypedDict, total=False):
    """Keyword arguments of a consensus rule."""

    quorum: int
    """Minimum number of people who must agree on an answer or a trace; 2 by default."""
    min_overlap: int
    """Minimum number of judgements per task; 2 by default."""
    method: Literal["majority", "dawid-skene"]
    """Method of the consensus: equal weights of annotators, or weights by estimated accuracy."""
    reviews: int
    """Number of people outside the task who must have accepted its consensus; 0 by default."""


def build_consensus_rule(
    *, quorum: int = 2, min_overlap: int = 2, method: str = "majority", reviews: int = 0
) -> "ConsensusRule":
    """Return the consensus rule with these settings.

    Raises:
        InvalidSettingError: A number is too small.
        UnknownNameError: No method has that name.
    """
    from unreel.annotation.consensus.outcome import ConsensusMethod, ConsensusRule

    methods = [m.value for m in ConsensusMethod]
    if method not in methods:
        raise UnknownNameError("method", method, methods)
    weights = ConsensusMethod(method)
    return ConsensusRule(quorum=quorum, min_overlap=min_overlap, method=weights, reviews=reviews)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StoredCampaign:
    """A campaign at the time of `open_campaign`; open it again to include later answers."""

    records: "CampaignRecords"
    """Tasks, and the newest judgement of each annotator about each task."""
    notices: "tuple[LedgerNotice, ...]"
    """Notices in the ledger: decisions about annotators, tasks and texts."""

    def status(self) -> "CampaignProgress":
        """Return the progress, speed and agreement of each annotator."""
        from unreel.annotation.campaign_state import measure_campaign_progress

        return measure_campaign_progress(self.records)

    def consensus(self, **rule: Unpack[RuleKeys]) -> "CampaignConsensus":
        """Return the consensus of each judged task, with the annotators who disagree."""
        from unreel.annotation.campaign_state import compute_campaign_consensus

        return compute_campaign_consensus(self.records, build_consensus_rule(**rule))

    def agreement(self, *, seed: int = 0) -> "CampaignAgreement":
        """Return the agreement of the annotators, with intervals."""
        from unreel.annotation.quality import measure_annotator_agreement

        interface = self.records.campaign.interface
        return measure_annotator_agreement(self._judgements(), interface=interface, seed=seed)

    def quality(self, *, passing: float = 0.8, seed: int = 0) -> "CampaignQuality":
        """Return the quality of each annotator; `passing` is the minimum accuracy on known clips."""
        from unreel.annotation.quality import measure_annotator_quality

        interface = self.records.campaign.interface
        return measure_annotator_quality(
            self._judgements(), interface=interface, passing=passing, seed=seed
        )

    def rank(self, *, seed: int = 0) -> "ClipRanking":
        """Rank the clips by preferences, or by the answers to one question.

        Raises:
            InvalidValueError: The campaign has no comparison.
        """
        from unreel.annotation.pairs import rank_clips

        return rank_clips(self._judgements(), seed=seed)

    def publish(
        self,
        out: str | Path,
        *,
        benchmark: str | Path | None = None,
        media: Literal["copy", "link"] = "copy",
        keep_undecided: bool = False,
        names: bool = False,
        seed: int = 0,
        **rule: Unpack[RuleKeys],
    ) -> "PublicationResult":
        """Write the consensus to the new folder `out` as a benchmark.

        Args:
            out: New folder for the benchmark.
            benchmark: Present path of the benchmark; its path at the push by default.
            media: `copy`, or `link` for hard links.
            keep_undecided: Keep clips without a consensus, with their original label.
            names: Publish the annotators' names instead of aliases.
            seed: Seed of the intervals and of the aliases.
            rule: Settings of the consensus, as in `consensus`.

        Raises:
            UnreadableSourceError: `out` is not empty, or there is nothing to publish.
        """
        from unreel.annotation.publishing.publish import publish_campaign_as_benchmark
        from unreel.annotation.publishing.publishable_campaign import build_publishable_campaign

        publishable = build_publishable_campaign(
            self.records, build_consensus_rule(**rule), notices=self.notices, seed=seed
        )
        path = publishable.campaign.benchmark if benchmark is None else str(benchmark)
        publishable = replace(
            publishable,
            keep_undecided=keep_undecided,
            campaign=replace(publishable.campaign, benchmark=path),
        )
        return publish_campaign_as_benchmark(
            publishable, Path(out), media=media, named=names, seed=seed
        )

    def _judgements(self) -> "list[AnnotatorJudgement]":
        from unreel.annotation.campaign_state import iter_valid_judgements

        return list(iter_valid_judgements(self.records))

    def __repr__(self) -> str:
        campaign, n_tasks = self.records.campaign, len(self.records.tasks)
        return sanitise_line(f"<StoredCampaign {campaign.name}: {n_tasks} tasks>")


def open_campaign(name: str, *, ledger: str | Path | None = None) -> StoredCampaign:
    """Read a campaign of `unreel annotate` from its ledger.

    Args:
        name: Name of the campaign.
        ledger: `postgresql://USER@HOST/DATABASE`, or a file; `UNREEL_LEDGER` by default.

    Raises:
        InvalidSettingError: No ledger is named.
        MissingExtraError: A required package is not installed.
        UnknownNameError: No campaign has that name.
    """
    with needs_extra("annotate"):
        from unreel.annotation.campaign_state import read_campaign_records
        from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url

    url = resolve_ledger_url(None if ledger is None else str(ledger), read_environment_settings())
    with open_ledger(url) as opened:
        records = read_campaign_records(opened, name)
        return StoredCampaign(records=records, notices=tuple(opened.notices(name)))


@dataclass(frozen=True, kw_only=True)
class LedgerSettings:
    """Settings of a command that reads or writes the ledger."""

    ledger: Annotated[str | None, Option(kind="ledger", metavar="ADDRESS")] = None
    """Ledger, the database of all judgements: postgresql://USER@HOST/DATABASE, or an SQLite file for a trial.  [default: the variable UNREEL_LEDGER]"""

    @contextmanager
    def open(self) -> "Iterator[Ledger]":
        """Open the ledger."""
        with needs_extra("annotate"):
            from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url

        with open_ledger(resolve_ledger_url(self.ledger, read_environment_settings())) as ledger:
            yield ledger


@dataclass(frozen=True, kw_only=True)
class CampaignSettings(LedgerSettings):
    """Settings of a command about one campaign."""

    campaign: Annotated[str, ARGUMENT]

    def open_campaign(self) -> StoredCampaign:
        """Read the campaign from the ledger."""
        return open_campaign(self.campaign, ledger=self.ledger)


@dataclass(frozen=True, kw_only=True)
class StateSettings(LedgerSettings):
    """Settings of a command that reads the state folder of Label Studio."""

    state: Annotated[Path | None, FOLDER] = None
    """Folder for the secrets, the database and the clip copies of Label Studio.  [default: the folder studio in UNREEL_STATE]"""

    def find_state_folder(self) -> Path:
        """Return the state folder of Label Studio."""
        from unreel.annotation.studio.client import get_studio_state_folder

        return get_studio_state_folder(read_environment_settings(), self.state)


@dataclass(frozen=True, kw_only=True)
class ConsensusSettings(LedgerSettings):
    """Settings that define how judgements become a consensus."""

    quorum: Annotated[int, POSITIVE] = 2
    """Minimum number of annotators who must give the same answer, or mark the same trace, for a consensus."""
    min_overlap: Annotated[int, POSITIVE] = 2
    """Minimum number of judgements of a task. A task with fewer has no consensus."""
    method: Literal["majority", "dawid-skene"] = "majority"
    """Weights of the annotators. majority: all equal; dawid-skene: by their estimated accuracy."""
    reviews: Annotated[int, Option(low=0)] = 0
    """Number of people who must accept the consensus of a task. Annotators of that task do not count."""

    @property
    def rule(self) -> RuleKeys:
        """Return the settings of the consensus rule."""
        return {
            "quorum": self.quorum,
            "min_overlap": self.min_overlap,
            "method": self.method,
            "reviews": self.reviews,
        }


@dataclass(frozen=True, kw_only=True)
class PairSettings(LayoutSettings, LedgerSettings):
    """Settings of `choose_pairs`."""

    benchmark: Annotated[Path, Option(is_argument=True, kind="existing")]
    plan: Literal["strict", "gain"]
    """Method of choosing pairs. strict: all pairs of clips with different scores; gain: the pairs with the largest expected information."""
    clips: Literal["vrb", "all"] = "vrb"
    """Clips for --plan strict. vrb: a sample of 30 scored clips, as in VideoRealBench; all: all scored clips."""
    n: Annotated[int | None, POSITIVE] = None
    """Number of pairs to choose.  [default: all for --plan strict, 100 for gain]"""
    seed: int = 0
    """Random seed for the sample of clips and for the choice between equally good pairs."""
    campaign: str | None = None
    """Campaign whose answers so far guide the choice. Only for --plan gain."""
    out: Annotated[Path, NEW_FILE] = Path("pairs.csv")
    """CSV table of pairs to write, for `unreel annotate push --pairs`."""


def choose_pairs(settings: PairSettings) -> "list[NamePair]":
    """Choose the pairs of clips that annotators compare, and write their table.

    Raises:
        InvalidSettingError: No two clips can be compared.
    """
    with needs_extra("annotate"):
        from unreel.annotation.campaign_state import iter_valid_judgements
        from unreel.annotation.pairs import (
            choose_balanced_pairs,
            choose_informative_pairs,
            iter_preference_wins,
            list_different_score_pairs,
            sample_clips_by_score,
            write_pair_file,
        )
        from unreel.benchmarks.entry import Entry
        from unreel.benchmarks.loader import open_benchmark

    rows = open_benchmark(settings.benchmark, settings.layout)
    entries = [row for row in rows if isinstance(row, Entry)]
    if settings.plan == "strict":
        scores = {entry.name: entry.rating.score for entry in entries if entry.rating is not None}
        if settings.clips == "vrb":
            scores = sample_clips_by_score(scores, seed=settings.seed)
        pairs = list_different_score_pairs(scores)
        if settings.n:
            pairs = choose_balanced_pairs(pairs, n=settings.n, seed=settings.seed)
    else:
        wins: list[NamePair] = []
        if settings.campaign:
            records = open_campaign(settings.campaign, ledger=settings.ledger).records
            wins = list(iter_preference_wins(iter_valid_judgements(records)))
        names = [entry.name for entry in entries]
        pairs = choose_informative_pairs(names, wins, n=settings.n or 100, seed=settings.seed)
    if not pairs:
        raise InvalidSettingError(
            "--plan", "no two clips can be compared", "Name a benchmark with scores, or --plan gain"
        )
    write_pair_file(settings.out, pairs)
    return pairs


@dataclass(frozen=True, kw_only=True)
class ExclusionSettings(CampaignSettings):
    """Settings of `decide_exclusion`."""

    annotator: Annotated[str, ARGUMENT]
    why: Annotated[str, Option(metavar="TEXT")]
    """Reason for the decision, stored in the ledger."""
    by: Annotated[str, Option(metavar="NAME")] = "lead"
    """Name of the person who makes this decision."""


def decide_exclusion(settings: ExclusionSettings, *, counts: bool) -> "AnnotatorExclusionEffect":
    """Store in the ledger whether an annotator's judgements count."""
    with needs_extra("annotate"):
        from unreel.annotation.campaign_state import (
            AnnotatorExclusionDecision,
            record_exclusion_decision,
        )

    decision = AnnotatorExclusionDecision(
        campaign=settings.campaign,
        annotator=settings.annotator,
        counts=counts,
        why=settings.why,
        by=settings.by,
        at_us=time.time_ns() // 1000,
    )
    with settings.open() as ledger:
        return record_exclusion_decision(ledger, decision)


@dataclass(frozen=True, kw_only=True)
class ReviewSettings(ConsensusSettings, CampaignSettings):
    """Settings of `review_consensus`."""

    task: Annotated[str, ARGUMENT]
    take: Annotated[str | None, Option(metavar="ANNOTATOR")] = None
    """Annotator whose answer replaces the consensus."""
    by: Annotated[str, Option(metavar="NAME")]
    """Name of the person who makes this decision. It must not be an annotator of the task."""
    why: Annotated[str, Option(metavar="TEXT")] = ""
    """Reason for the decision, stored in the ledger. Required with --send-back."""


def review_consensus(
    settings: ReviewSettings, *, verdict: Literal["accept", "send-back"] | None
) -> "tuple[AnnotationTask, Outcome]":
    """Store the review of a task in the ledger; return the task and its outcome after it.

    Raises:
        InvalidSettingError: Both or neither of `verdict` and `settings.take` are given.
    """
    with needs_extra("annotate"):
        from unreel.annotation.campaign_state import (
            ConsensusReviewRequest,
            find_campaign_task,
            read_campaign_records,
            record_consensus_review,
        )
        from unreel.annotation.consensus.outcome import ConsensusReviewDecision

    with settings.open() as ledger:
        records = read_campaign_records(ledger, settings.campaign)
        task = find_campaign_task(records, settings.task)
        if bool(verdict) == bool(settings.take):
            raise InvalidSettingError(
                "review",
                "give one of --accept, --send-back and --take ANNOTATOR",
                "Look at it with `unreel annotate report` first",
            )
        request = ConsensusReviewRequest(
            task=task.id,
            verdict=ConsensusReviewDecision(verdict or ConsensusReviewDecision.TAKE),
            annotator=settings.take or "",
            by=settings.by,
            why=settings.why,
            at_us=time.time_ns() // 1000,
        )
        rule = build_consensus_rule(**settings.rule)
        return task, record_consensus_review(ledger, records, request, rule)


@dataclass(frozen=True, kw_only=True)
class PolishSettings(CampaignSettings):
    """Settings of `polish_campaign`."""

    model: str | None = None
    """Language model that merges the annotators' texts, as provider/name@URL. Without it, only the stored merged texts are printed."""
    again: bool = False
    """Merge all texts again, including those with a stored result."""
    quorum: Annotated[int, POSITIVE] = 2
    """Minimum number of annotators who must give the same answer, or mark the same trace, for a consensus. Use the same value as for `unreel annotate publish`."""
    min_overlap: Annotated[int, POSITIVE] = 2
    """Minimum number of judgements of a task. A task with fewer has no consensus. Use the same value as for `unreel annotate publish`."""


@dataclass(frozen=True, kw_only=True)
class PolishedCampaign:
    """Texts of a campaign with the annotators' originals, and the texts that a model failed to merge."""

    texts: "list[tuple[OriginalRationales, PolishedText]]"
    failed: "list[RationalePolishFailure]"
    n_originals: int


def polish_campaign(settings: PolishSettings, on_note: Callable[[str], None]) -> PolishedCampaign:
    """Merge and store the texts that have no stored result, if a model is named; return all texts.

    `on_note` receives the address of the model's server before it is asked.
    """
    with needs_extra("annotate"):
        from unreel.annotation.campaign_state import read_campaign_records
        from unreel.annotation.consensus.outcome import ConsensusRule
        from unreel.annotation.rationale_polishing import (
            RationalePolishFailure,
            RationalePolishResult,
            iter_original_rationales,
            load_sentence_encoder,
            polish_all_rationales,
            read_polished_texts,
            store_polished_texts,
        )
        from unreel.recipes.validation import validate_recipe_sections
        from unreel.reviewers.config import ReviewerSection

    from unreel.api.contacts import describe_model_servers

    environment = read_environment_settings()
    campaign = settings.campaign
    rule = ConsensusRule(quorum=settings.quorum, min_overlap=settings.min_overlap)
    failed: list[RationalePolishFailure] = []
    with settings.open() as ledger:
        originals = list(iter_original_rationales(read_campaign_records(ledger, campaign), rule))
        if settings.model:
            stored = read_polished_texts(ledger.notices(campaign))
            known = set() if settings.again else {(t, text.original) for t, text in stored.items()}
            due = [original for original in originals if (original.task, original.key) not in known]
            section = validate_recipe_sections(ReviewerSection, {"model": settings.model})
            for note in describe_model_servers([settings.model], environment):
                on_note(note)
            factory = section.opener(key_hosts=environment.key_hosts)
            answers = polish_all_rationales(
                due, factory, in_flight=section.max_connections, encoder=load_sentence_encoder()
            )
            done = [answer for answer in answers if isinstance(answer, RationalePolishResult)]
            store_polished_texts(ledger, campaign, done, at_us=time.time_ns() // 1000)
            failed = [answer for answer in answers if isinstance(answer, RationalePolishFailure)]
        polished = read_polished_texts(ledger.notices(campaign))
    by_task = {original.task: original for original in originals}
    texts = [(by_task[task], text) for task, text in polished.items() if task in by_task]
    return PolishedCampaign(texts=texts, failed=failed, n_originals=len(originals))


@dataclass(frozen=True, kw_only=True)
class ConfirmSettings(CampaignSettings):
    """Settings of `confirm_polished_text`."""

    task: Annotated[str, ARGUMENT]
    by: Annotated[str, Option(metavar="NAME")]
    """Name of the person who makes this decision."""
    reject: bool = False
    """Reject the polished text, because its meaning has changed. The annotators' own texts are used instead."""


def confirm_polished_text(settings: ConfirmSettings) -> "tuple[str, PolishedText]":
    """Store whether a person accepts or rejects the polished text of a task; return clip name and text."""
    with needs_extra("annotate"):
        from unreel.annotation.rationale_polishing import (
            read_polished_texts,
            store_polish_confirmation,
        )

    if not settings.by.strip():
        raise InvalidSettingError("--by", "the name of the reader is missing", "Give your name")
    campaign = settings.campaign
    with settings.open() as ledger:
        names = {task.id: task.names[0] for task in ledger.tasks(campaign)}
        polished = read_polished_texts(ledger.notices(campaign))
        tasks_by_name = {name: task for task, name in names.items() if task in polished}
        task = tasks_by_name.get(settings.task, settings.task)
        if task not in polished:
            raise UnknownNameError("polished text", settings.task, sorted(tasks_by_name))
        store_polish_confirmation(
            ledger,
            campaign,
            polished[task],
            by=settings.by,
            accepted=not settings.reject,
            at_us=time.time_ns() // 1000,
        )
        return names[task], read_polished_texts(ledger.notices(campaign))[task]


@dataclass(frozen=True, kw_only=True)
class QualitySettings(CampaignSettings):
    """Settings of `StoredCampaign.quality`."""

    passing: Annotated[float, Option(low=0, high=1)] = 0.8
    """Minimum fraction of right answers, on tasks with a known answer, for an annotator to count as qualified."""
    seed: int = 0
    """Random seed for the confidence intervals."""


def describe_unanimity_rule() -> str:
    """Return VideoRealBench's rule for the qualification of annotators as text."""
    from unreel.annotation.quality import UNANIMOUS, UNANIMOUS_CLIPS

    return f"{UNANIMOUS:.0%} of {UNANIMOUS_CLIPS} clips"


@dataclass(frozen=True, kw_only=True)
class RankSettings(CampaignSettings):
    """Settings of `StoredCampaign.rank`."""

    seed: int = 0
    """Random seed for the confidence intervals."""


@dataclass(frozen=True, kw_only=True)
class ConsensusListSettings(ConsensusSettings, CampaignSettings):
    """Settings of the command that prints the consensus of each task."""

    only_open: Annotated[bool, Option(name="--open")] = False
    """Print only the tasks without a consensus."""
    out: Annotated[Path | None, NEW_FILE] = None
    """JSON file for the consensus of all tasks. The table is printed as well."""


def build_consensus_row(task: "AnnotationTask", outcome: "Outcome") -> dict[str, object]:
    """Return the outcome of a task as texts: task, clip, state, answer, method, support and dissent."""
    from unreel.annotation.consensus.outcome import OpenTask, get_categorical_answer

    def format_judgement(value: "AnyValue") -> str:
        n_faults = len(getattr(value, "traces", ()))
        faults = f", {n_faults} {'fault' if n_faults == 1 else 'faults'}" if n_faults else ""
        return f"{get_categorical_answer(value)}{faults}"

    row: dict[str, object] = {"task": task.id, "clip": " | ".join(task.names)}
    if isinstance(outcome, OpenTask):
        row |= {"state": outcome.why.value, "answer": "", "method": "", "support": ""}
        judgements = outcome.judgements
    else:
        row |= {"state": "settled", "answer": format_judgement(outcome.value)}
        row |= {"method": outcome.method.value, "support": ", ".join(outcome.support)}
        judgements = outcome.dissent
    return row | {
        "dissent": "; ".join(f"{name}: {format_judgement(value)}" for name, value in judgements)
    }


@dataclass(frozen=True, kw_only=True)
class PublishSettings(ConsensusSettings, CampaignSettings):
    """Settings of `StoredCampaign.publish`."""

    out: Annotated[Path, FOLDER]
    """New folder for the benchmark."""
    benchmark: Annotated[Path | None, Option(kind="existing", metavar="PATH")] = None
    """New path of the campaign's benchmark, if it has been moved since `unreel annotate push`."""
    media: Literal["copy", "link"] = "copy"
    """How clips get into the output folder; they are never re-encoded. copy: copies; link: links to the files."""
    keep_undecided: bool = False
    """Also publish clips without a consensus, with the label from the original benchmark. Only for the interfaces reality and pass-fail."""
    names: bool = False
    """Publish the names of the annotators instead of aliases such as annotator-1."""
    seed: int = 0
    """Random seed for the confidence intervals and the annotators' aliases."""


@dataclass(frozen=True, kw_only=True)
class ReportSettings(ConsensusSettings, StateSettings, CampaignSettings):
    """Settings of `write_campaign_report`."""

    out: Annotated[Path, FOLDER]
    """Output folder for the page."""
    copies: Annotated[Path | None, FOLDER] = None
    """Folder of the clip copies that annotators saw.  [default: the folder served by `unreel annotate up`]"""
    url: Annotated[str | None, Option(metavar="ADDRESS")] = None
    """URL of the Label Studio server, for the links from the page to tasks."""
    max_shown: Annotated[int, Option(name="--most", low=1)] = 200
    """Maximum number of disagreements that are shown with a video player. The table lists all tasks."""
    seed: int = 0
    """Random seed for the confidence intervals."""


def write_campaign_report(
    settings: ReportSettings, on_note: Callable[[str], None]
) -> "CampaignPageResult":
    """Write the HTML page of a campaign; `on_note` receives why annotators have no accuracy."""
    with needs_extra("annotate"):
        from unreel.annotation.campaign_page import (
            CampaignPageSettings,
            build_judged_task_urls,
            write_campaign_page,
        )
        from unreel.annotation.campaign_state import read_campaign_records
        from unreel.annotation.publishing.publishable_campaign import (
            build_annotator_scoring_input,
            build_publishable_campaign,
            score_annotators,
        )
        from unreel.annotation.studio.client import CLIPS, find_studio_connection
        from unreel.benchmarks.entry import Entry
        from unreel.benchmarks.loader import open_benchmark

    folder, address = settings.find_state_folder(), settings.url
    if address is None:
        with suppress(InvalidSettingError):  # no server was started
            address = find_studio_connection(folder).address
    with settings.open() as ledger:
        records = read_campaign_records(ledger, settings.campaign)
        links: dict[tuple[str, str], str] = {}
        if address:
            links = build_judged_task_urls(ledger, records, address=address.rstrip("/"))
    campaign = build_publishable_campaign(
        records, build_consensus_rule(**settings.rule), seed=settings.seed
    )
    names = {name for task in campaign.tasks.values() for name in task.names}
    people: tuple[AnnotatorScoreRow, ...] = ()
    try:
        rows = open_benchmark(Path(campaign.campaign.benchmark))
        entries = {row.name: row for row in rows if isinstance(row, Entry) and row.name in names}
    except UnreelError as error:
        on_note(f"no annotator is compared with the ground truth: {error}")
    else:
        people = score_annotators(
            build_annotator_scoring_input(campaign, entries, seed=settings.seed)
        )
    page = CampaignPageSettings(
        media=settings.copies or folder / CLIPS,
        links=links,
        people=people,
        max_shown=settings.max_shown,
        seed=settings.seed,
    )
    return write_campaign_page(campaign, records, settings.out, page)
