"""Scoring of stored runs, and of answers, segments or votes in files; no question is sent to a reviewer."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unreel.api.keyword_types import require_parser_name
from unreel.api.public_benchmarks import (
    apply_catalogue_settings,
    describe_choice,
    find_named_benchmark,
)
from unreel.api.shared_settings import BenchmarkSettings, BoxSettings, parse_column_mapping
from unreel.core.command_options import Option
from unreel.core.errors import InvalidSettingError, UnreadableSourceError
from unreel.core.estimate import Scorecard
from unreel.core.failure import Failure
from unreel.core.registry import needs_extra
from unreel.core.settings import read_environment_settings
from unreel.protocols.protocol import VOTED, Mode, Protocol, Subject, get_protocol

if TYPE_CHECKING:
    from unreel.benchmarks.entry import Rejected
    from unreel.benchmarks.imported_answers import JoinedAnswers, ScorableRows
    from unreel.benchmarks.loader import Benchmark
    from unreel.benchmarks.votes import JoinedVotes, VoteScores
    from unreel.evaluation.explanation_scores import ExplanationJudges, ReasonSimilarityScorer
    from unreel.evaluation.judge import JudgeRulingStore
    from unreel.evaluation.run_job import EvalRun
    from unreel.evaluation.scoring import ConditionScore


def score(
    answers: str | Path | Mapping[str, str | Failure],
    *,
    benchmark: "str | Path | Benchmark",
    protocol: str,
    prompt: str = "paper",
    parser: Mode = "strict",
    box_space: str | None = None,
    split: str | None = None,
    seed: int = 0,
    allow_outside: bool = False,
) -> Scorecard:
    """Score `answers` against the ground truth of `benchmark`; no question is sent.

    A clip without an answer is not counted; a warning gives their number.

    Args:
        answers: A JSONL, CSV, TSV or Parquet file with `name` and `text` or `failure`, a JSON or text
            file of predicted segments, or the texts by the names of the clips; a pair is named
            `FIRST | SECOND`, in the order shown.
        benchmark: Folder or table of clips with their ground truth, or the result of
            `open_benchmark`.
        protocol: Protocol of the answers: `trace`, `realism`, `reality`, `preference` or `locate`.
        prompt: Prompt variant of the answers.
        parser: `strict` reads the requested format, `lenient` also its common variations.
        box_space: Coordinates of boxes, for example `pixel`; `trace` and `locate` need it.
        split: Score only this split of the benchmark.
        seed: Seed of the intervals.
        allow_outside: Let a table name files outside its folder; only for your own tables.

    Raises:
        UnreadableSourceError: The answers or the benchmark cannot be read, or do not match.
        InvalidSettingError: A setting is missing.
        UnknownNameError: No protocol, prompt, parser or split has that name.
    """
    from unreel.benchmarks.imported_answers import build_scorable_rows, require_scorable_rows
    from unreel.benchmarks.loader import Benchmark, open_benchmark
    from unreel.benchmarks.localisation.predictions import find_prediction_box_space

    instrument = get_protocol(protocol)
    instrument.prompt(prompt)
    if box_space is None and isinstance(answers, str | Path):
        box_space = find_prediction_box_space(Path(answers))
    if instrument.needs_box_space and box_space is None:
        raise InvalidSettingError(
            "box_space",
            f"{protocol} needs it",
            "Name the unit of the boxes, for example box_space='pixel'",
        )
    opened = benchmark
    if not isinstance(opened, Benchmark):
        opened = open_benchmark(Path(opened), outside=allow_outside)
    joined = _join_answers_to_benchmark(opened, answers, instrument).in_split(split)
    scorable = build_scorable_rows(
        joined, instrument, mode=require_parser_name(parser), prompt=prompt, space=box_space
    )
    answers_name = "answers" if isinstance(answers, Mapping) else str(answers)
    source = str(opened.root if isinstance(benchmark, Benchmark) else benchmark)
    require_scorable_rows(scorable, joined, instrument, answers=answers_name, benchmark=source)
    _warn_missing_answers(joined, scorable, instrument.subject)
    return instrument.score(scorable.rows, seed=seed)


def _join_answers_to_benchmark(
    benchmark: "Benchmark",
    answers: str | Path | Mapping[str, str | Failure],
    protocol: Protocol[Any, Any],
) -> "JoinedAnswers":
    from unreel.benchmarks.imported_answers import join_answers_with_entries

    subject, name = protocol.subject, protocol.instrument.protocol
    if isinstance(answers, Mapping):
        source, joined = "answers", join_answers_with_entries(benchmark, answers, subject)
    elif Path(answers).is_dir():
        raise UnreadableSourceError(
            str(answers),
            "a folder is not a file of answers",
            "Name a file; a run is scored by open_run(FOLDER).score()",
        )
    else:
        source, joined = (
            str(answers),
            join_answers_with_entries(benchmark, Path(answers), subject, protocol=name),
        )
    if joined.unknown:
        first, n = joined.unknown[0], len(joined.unknown)
        raise UnreadableSourceError(
            source,
            f"{n} of its names are none of the benchmark's, the first is {first!r}",
            "Use the names of its entries",
        )
    return joined


def _warn_missing_answers(
    joined: "JoinedAnswers", scorable: "ScorableRows", subject: Subject
) -> None:
    unusable = (*joined.rejected, *scorable.without_truth)
    warning_parts = [
        f"{len(scorable.not_asked)} of {len(joined.pairs)} {subject}s have no answer"
        if scorable.not_asked
        else "",
        f"{len(unusable)} rows cannot be used, the first is {unusable[0]}" if unusable else "",
    ]
    if any(warning_parts):
        warnings.warn("; ".join(filter(None, warning_parts)), UserWarning, stacklevel=3)


@dataclass(frozen=True, kw_only=True)
class ScoreSettings(BoxSettings, BenchmarkSettings):
    """Settings of `score_stored_run` and `score_answer_file`."""

    answers: Annotated[str, Option(is_argument=True, kind="run")]
    benchmark: Annotated[Path | None, Option(kind="existing benchmark", metavar="B")] = None
    """Benchmark with the ground truth: a folder or a table of clips, or the name of a downloaded public benchmark. A run needs it only if its benchmark has been moved."""
    accept_changed: bool = False
    """Continue even if the benchmark or the recipe has changed since the run began."""
    protocol: Annotated[str | None, Option(kind="protocol")] = None
    """Protocol of the answered questions. Required for a file of answers."""
    prompt: str = "paper"
    """Prompt variant of the answered questions; paper is the published prompt."""
    parser: Mode | None = None
    """Parser of the answers. strict: accepts only the requested format; lenient: also accepts common variations.  [default: that of the run's recipe, else strict]"""
    split: str | None = None
    """Name of the benchmark split to use, for example test.  [default: all splits]"""
    seed: int = 0
    """Random seed for the confidence intervals."""
    judges: Annotated[tuple[str, ...], Option(name="--judge", metavar="MODEL")] = ()
    """Model that scores the explanations in the answers. Repeatable: with two models, their agreement is printed."""
    sts: bool = False
    """Also measure the similarity of explanations to the ground truth, by sentence embeddings."""
    out: Annotated[str | None, Option(metavar="PLACE")] = None
    """Folder or s3:// prefix for the scores of --judge, if ANSWERS is a file.  [default: ANSWERS.rulings]"""


def score_stored_run(
    settings: ScoreSettings, on_note: Callable[[str], None]
) -> "tuple[EvalRun, Sequence[ConditionScore], dict[str, Any]]":
    """Score a stored run; return it with a scorecard for each condition and a summary of the judges.

    `on_note` receives the servers of the judges, and a warning if the run does not identify its benchmark.
    """
    with needs_extra("eval"):
        from unreel.api.runs import StoredRunSettings, open_noted_run
        from unreel.evaluation.explanation_scores import open_run_rulings
        from unreel.evaluation.scoring import score_run

    if (named := find_named_benchmark(settings.benchmark)) is not None:
        settings, _ = apply_catalogue_settings(settings, named)
    source = StoredRunSettings(
        moved_to=settings.benchmark,
        allow_outside=settings.allow_outside,
        accept_changed=settings.accept_changed,
    )
    run = open_noted_run(settings.answers, source, on_note)
    scorer = _open_explanation_scorer(
        settings,
        run.recipe.instrument,
        seed=run.recipe.seed,
        store=open_run_rulings(run),
        on_note=on_note,
    )
    mode = settings.parser or run.recipe.reviewer.parser
    scores = score_run(run, mode=mode, score_texts=scorer)
    return run, scores, _summarise_explanation_scores(scorer)


def _open_explanation_scorer(
    settings: ScoreSettings,
    protocol: Protocol[Any, Any],
    *,
    seed: int,
    store: "JudgeRulingStore",
    on_note: Callable[[str], None],
) -> "ExplanationJudges | ReasonSimilarityScorer | None":
    """Return the scorer by `--judge`, whose servers are reported, or by `--sts`; `None` without both."""
    from unreel.api.contacts import describe_model_servers
    from unreel.evaluation.explanation_scores import (
        ExplanationJudges,
        ReasonSimilarityScorer,
        build_explanation_judge,
    )
    from unreel.reviewers.sentence_embeddings import MiniLmEncoder

    judges, environment = settings.judges, read_environment_settings()
    if judges and settings.sts:
        raise InvalidSettingError(
            "--sts",
            "cannot be combined with --judge",
            "Give --judge for trace, or --sts for realism",
        )
    options = (("--judge", judges, "explanation"), ("--sts", settings.sts, "sts"))
    for option, is_given, metric in options:
        if is_given and metric not in protocol.figures:
            raise InvalidSettingError(
                option,
                f"{protocol.instrument.protocol} has no figure that it scores",
                "Leave it out",
            )
    if settings.sts:
        return ReasonSimilarityScorer(MiniLmEncoder())
    if not judges:
        return None
    for line in describe_model_servers(judges, environment):
        on_note(line)
    functions = [
        build_explanation_judge(judge, store, key_hosts=environment.key_hosts) for judge in judges
    ]
    return ExplanationJudges(functions, seed)


def _summarise_explanation_scores(
    scorer: "ExplanationJudges | ReasonSimilarityScorer | None",
) -> dict[str, Any]:
    """Return a JSON summary of how explanations were scored; empty if they were not scored."""
    from unreel.evaluation.explanation_scores import ExplanationJudges

    if scorer is None:
        return {}
    if not isinstance(scorer, ExplanationJudges):
        return {"checkpoint": scorer.encoder.name}
    judges = [
        {
            "judge": judging.judge,
            "scored": judging.n_scored,
            "unscored": judging.unscored,
            "tokens": judging.tokens,
            "spent": judging.spent,
        }
        for judging in scorer.judgings
    ]
    return {"judges": judges, "agreements": scorer.agreements}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredAnswers:
    """Scorecard of a file of answers, and unmatched clips and answers."""

    scorecard: Scorecard
    prompt: str
    """Prompt variant of the questions."""
    not_asked: tuple[str, ...]
    unknown: tuple[str, ...]
    rejected: "tuple[Rejected, ...]"
    without_truth: "tuple[Rejected, ...]"
    texts: Mapping[str, Any]
    """Summary of how explanations were scored; empty if they were not scored."""

    @property
    def is_complete(self) -> bool:
        """Return whether every clip has an answer and every row is usable."""
        left_over = self.not_asked or self.unknown or self.rejected or self.without_truth
        return not (left_over or self.scorecard.failures)


def get_subject(settings: ScoreSettings) -> Subject:
    """Return the subject of the protocol's questions: `clip` or `pair`."""
    return get_protocol(settings.protocol or VOTED).subject


def score_answer_file(
    settings: ScoreSettings, on_note: Callable[[str], None]
) -> "ScoredAnswers | tuple[VoteScores, JoinedVotes]":
    """Score the answers, segments or votes in a file.

    Raises:
        InvalidSettingError: A setting is missing, or does not fit the file.
        UnreadableSourceError: The file cannot be read.
    """
    from unreel.benchmarks.imported_answers import (
        VOTER,
        build_scorable_rows,
        join_answers_with_entries,
        require_scorable_rows,
    )
    from unreel.benchmarks.loader import open_benchmark
    from unreel.benchmarks.localisation.predictions import (
        find_prediction_box_space,
        is_segment_prediction_file,
    )
    from unreel.benchmarks.tables import read_table_column_names
    from unreel.benchmarks.votes import join_votes_with_entries, score_votes

    if (named := find_named_benchmark(settings.benchmark)) is not None:
        settings, chosen = apply_catalogue_settings(settings, named)
        on_note(describe_choice(named, chosen))
    path = Path(settings.answers)
    if not path.exists():
        raise UnreadableSourceError(settings.answers, "no such file or folder", "Check the path")
    if settings.benchmark is None or settings.protocol is None:
        raise InvalidSettingError(
            "--benchmark" if settings.benchmark is None else "--protocol",
            "missing",
            "A file of answers needs it; a folder of `unreel eval` does not",
        )
    protocol = get_protocol(settings.protocol)
    box_space = settings.box_space or find_prediction_box_space(path)
    if protocol.needs_box_space and box_space is None:
        raise InvalidSettingError(
            "--box-space", "missing", "Name the unit of the boxes, for example --box-space pixel"
        )
    protocol.prompt(settings.prompt)
    benchmark = open_benchmark(
        settings.benchmark,
        settings.layout,
        mapping=parse_column_mapping(settings.mapping),
        outside=settings.allow_outside,
    )
    if not is_segment_prediction_file(path) and VOTER in read_table_column_names(path):
        if settings.protocol != VOTED:
            raise InvalidSettingError(
                "--protocol", "votes say real or generated", f"Use --protocol {VOTED}"
            )
        votes = join_votes_with_entries(benchmark, path, split=settings.split)
        return score_votes(votes.ballots, seed=settings.seed), votes
    joined = join_answers_with_entries(
        benchmark, path, protocol.subject, protocol=settings.protocol
    ).in_split(settings.split)
    scorable = build_scorable_rows(
        joined, protocol, mode=settings.parser or "strict", prompt=settings.prompt, space=box_space
    )
    source = str(settings.benchmark)
    require_scorable_rows(scorable, joined, protocol, answers=str(path), benchmark=source)
    rows: Any = scorable.rows
    texts: Mapping[str, Any] = {}
    if settings.judges or settings.sts:
        with needs_extra("eval"):
            from unreel.evaluation.explanation_scores import open_answer_file_rulings

        store = open_answer_file_rulings(path, settings.out, read_environment_settings())
        scorer = _open_explanation_scorer(
            settings, protocol, seed=settings.seed, store=store, on_note=on_note
        )
        rows = rows if scorer is None else scorer(rows)
        scorecard = protocol.score(rows, seed=settings.seed)
        texts = _summarise_explanation_scores(scorer)
    else:
        scorecard = protocol.score(rows, seed=settings.seed)
    return ScoredAnswers(
        scorecard=scorecard,
        prompt=settings.prompt,
        not_asked=scorable.not_asked,
        unknown=joined.unknown,
        rejected=joined.rejected,
        without_truth=scorable.without_truth,
        texts=texts,
    )
