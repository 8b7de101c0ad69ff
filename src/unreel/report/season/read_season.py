"""Data for the pages of a season, read from its folder; no question is sent.

The data are facts, the clips that pages may show, and warnings.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from unreel.arena.answers.answer_table import NOBODY, SAID_GENERATED, SAID_REAL, SeasonAnswerTable
from unreel.arena.answers.season_answers import encode_answer_label, read_reviewer_answers
from unreel.arena.boards.ablations import measure_ablation_effects
from unreel.arena.boards.reviewer_bias import measure_reviewer_biases
from unreel.arena.fairness.holdout import (
    compare_hidden_and_known_scenes,
    find_canary_clips,
    find_hidden_scenes,
    measure_canary_answers,
)
from unreel.arena.fairness.similar_reviewers import compare_reviewer_errors
from unreel.arena.fairness.team_attempts import (
    CorrectedBestAttempt,
    TeamAttempts,
    collect_team_attempts,
    correct_best_attempt,
    is_leaderboard_row_of_entry,
)
from unreel.arena.run.budget import sum_season_cost_usd
from unreel.arena.run.question_plan import read_question_plan
from unreel.arena.season.clip_set import (
    open_season_clip_facts_table,
    open_season_clip_set,
    read_clip_controls,
)
from unreel.arena.season.folder import SeasonEntrants, SeasonFolder, read_stored_season_recipe
from unreel.arena.season.recipe import SeasonRecipe
from unreel.arena.submission.season_log import SeasonLog, read_season_log
from unreel.benchmarks.entry import Entry
from unreel.core.clip import Clip, format_creator_with_setting
from unreel.core.estimate import Estimate
from unreel.core.server_keys import hide_server_addresses
from unreel.core.settings import read_environment_settings
from unreel.core.span import convert_to_microseconds
from unreel.creators.contract import ClipClass
from unreel.curation.hub_dataset import find_hub_licence_id
from unreel.engine.clip_facts import StoredClipFacts
from unreel.pages.playable_clip import PlayerVideo
from unreel.pages.player import PlayerSpec, build_player_spec
from unreel.report.clips.clip_files import ReportMediaFolder
from unreel.report.review.drawn_findings import build_finding_tracks
from unreel.report.season.clip_answers import shorten_reason
from unreel.report.season.leaderboards import read_season_leaderboards
from unreel.report.season.page_data import SeasonClipDetails, SeasonPageData
from unreel.stats.resampling import RESAMPLES

Showing = Literal["licensed", "link", "copy", "none"]
Show = Callable[[Entry, Clip], PlayerSpec | None]


def build_clip_publisher(folder: ReportMediaFolder, showing: Showing) -> Show:
    """Return a function that puts a clip on the season's pages and returns its player configuration.

    The function links or copies the clip into the media folder; it returns `None` if the clip may
    not be shown.
    """

    def show(entry: Entry, clip: Clip) -> PlayerSpec | None:
        if showing == "licensed" and find_hub_licence_id(entry.licence) is None:
            return None
        source, _ = folder.add(clip)
        return None if source is None else _build_player_spec(entry, clip, source)

    return show


def _build_player_spec(entry: Entry, clip: Clip, source: str) -> PlayerSpec:
    video = clip.facts.video
    footage = PlayerVideo(
        src=f"../{source}",
        width=video.width,
        height=video.height,
        n_frames=video.n_frames,
        rate=None if video.variable_rate else video.average_rate,
        first_us=convert_to_microseconds(video.first_at_s),
        is_copy=False,
    )
    duration_us = convert_to_microseconds(video.duration_s)
    tracks = build_finding_tracks((), entry.traces, duration_us=duration_us)
    return build_player_spec(footage, title=entry.name, duration_us=duration_us, tracks=tracks)


def iter_absence_notes(entrants: SeasonEntrants) -> Iterator[str]:
    """Yield a note for each entrant that took no part or was withdrawn."""
    for each in entrants.reviewers:
        if each.unfitted:
            yield hide_server_addresses(f"{each.title} is excluded: {each.unfitted.rstrip('.')}.")
    if entrants.retired:
        names = hide_server_addresses(", ".join(entrants.retired))
        yield f"Removed from the season; their results stay: {names}."


def iter_log_edit_warnings(log: SeasonLog) -> Iterator[str]:
    """Yield a warning for each sign that the log of the season's entries was edited afterwards."""
    for problem in log.broken:
        yield f"The log of entries was changed: {problem}."


def iter_similarity_warnings(play: SeasonAnswerTable, *, seed: int) -> Iterator[str]:
    """Yield a warning for each pair of reviewers with more common errors than hard clips explain."""
    for pair in compare_reviewer_errors(play, seed=seed).suspected:
        rate = pair.shared_errors
        percent = f"{rate.value:.0f} %" if isinstance(rate, Estimate) else "most"
        yield (
            f"{pair.first} and {pair.second} share {percent} of their errors under {play.condition}, more than hard clips "
            "explain: possibly copies, or one model under two names."
        )


def iter_leakage_warnings(folder: SeasonFolder, play: SeasonAnswerTable) -> Iterator[str]:
    """Yield a warning for each entrant that may have seen public scenes or canary labels before."""
    recipe = read_stored_season_recipe(folder)
    hidden = find_hidden_scenes(folder.path, recipe, play.lineup.scenes)
    for gap in compare_hidden_and_known_scenes(play, hidden) if hidden else ():
        if gap.flagged and isinstance(gap.gap, Estimate):
            yield (
                f"{gap.name} is better on known scenes, by {gap.gap.value:.1f} points "
                f"[{gap.gap.low:.1f}, {gap.gap.high:.1f}] under {play.condition}: it may have seen them before."
            )
    canaries = find_canary_clips(folder.path, recipe, play.lineup)
    for answers in measure_canary_answers(play, canaries) if canaries else ():
        if answers.flagged:
            yield f"{answers.reviewer} repeats labels that were published as a trap, under {play.condition}."


def iter_best_attempt_notes(
    play: SeasonAnswerTable, tries: Sequence[TeamAttempts], *, seed: int
) -> Iterator[str]:
    """Yield a note for each team with several entries: its best result, corrected for selection."""
    for team in tries:
        rows = select_team_rows(team, play)
        best = (
            correct_best_attempt(play, rows, kind=team.kind, seed=seed) if len(rows) > 1 else None
        )
        if isinstance(best, CorrectedBestAttempt) and isinstance(best.corrected, Estimate):
            corrected = best.corrected
            yield (
                f"{team.team or 'A team without a name'} entered {len(rows)} times as {team.kind}. The best, "
                f"{best.entry}, has {best.raw:.1f} % as scored, and {corrected.value:.1f} % "
                f"[{corrected.low:.1f}, {corrected.high:.1f}] after correction for selection of the best."
            )


def select_team_rows(tries: TeamAttempts, play: SeasonAnswerTable) -> list[str]:
    """Return the names of the leaderboard rows that are entries of the team."""
    board = play.reviewers if tries.kind == "reviewer" else play.lineup.creators
    return [
        row
        for row in board
        if any(is_leaderboard_row_of_entry(row, entry) for entry in tries.entries)
    ]


_SERVICE: Final = "service"
"""Parameter with the server that generated a clip; it is not published."""
_HIDING: Final = "Some scenes are hidden during the season, so these pages show no individual clips. Metrics count all of them."


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonReadOptions:
    """Options for reading a season: resamples, and whether and how pages show clips."""

    resamples: int = RESAMPLES
    reveals: bool = False
    """Whether to show single clips although some are hidden, after the end of the season."""
    show: Show | None = None
    """Function that puts clips next to pages; `None` without clips."""


def read_season_page_data(folder: SeasonFolder, reading: SeasonReadOptions) -> SeasonPageData:
    """Read everything about a season that its pages show."""
    boards = read_season_leaderboards(folder, resamples=reading.resamples)
    entrants, recipe = folder.require_played(), read_stored_season_recipe(folder)
    hidden = bool(recipe.holdout.share or recipe.holdout.canaries) and not reading.reveals
    hides_clips = hidden or entrants.is_about_pairs
    log = read_season_log(folder.path)
    tries = collect_team_attempts(log)
    rows = [] if hides_clips else _read_generation_rows(folder)
    return SeasonPageData(
        name=boards.name,
        facts=tuple(_iter_season_facts(folder, entrants, recipe, log.head if log.lines else "")),
        plays=boards.plays,
        standings=boards.standings,
        clips={} if hides_clips else dict(_iter_clip_details(folder, entrants, rows, reading.show)),
        unmade={} if hides_clips else _group_generation_failures(rows, entrants),
        words={} if hides_clips else _read_reviewer_reasons(folder, entrants, boards.plays),
        attempts=_count_attempts(tries, boards.plays[:1]),
        entries=log.events,
        ablations=measure_ablation_effects(boards.plays, knobs=recipe.knobs),
        leanings=tuple(bias for play in boards.plays for bias in measure_reviewer_biases(play)),
        notes=(*((_HIDING,) if hidden else ()), *_iter_season_notes(folder, boards.plays, tries)),
        plan=tuple(_iter_plan_facts(folder, entrants, recipe)),
        retired=boards.retired,
        shows_clips=not hides_clips,
    )


def _iter_season_facts(
    folder: SeasonFolder, entrants: SeasonEntrants, recipe: SeasonRecipe, head: str
) -> Iterator[tuple[str, str]]:
    yield "Benchmark", recipe.benchmark.rpartition("/")[2]
    yield "Digest of the benchmark", entrants.digest
    yield "Protocol", entrants.protocol
    yield "Seed", str(entrants.seed)
    cost = sum_season_cost_usd(folder, entrants)
    yield "Cost", "not reported" if cost is None else f"{cost:,.2f} USD, as far as reported"
    if head:
        yield "Last hash of the log", head


def _read_generation_rows(folder: SeasonFolder) -> list[Mapping[str, Any]]:
    return list(folder.made.rows()) if folder.made.exists() else []


def _iter_clip_details(
    folder: SeasonFolder,
    entrants: SeasonEntrants,
    generated: Sequence[Mapping[str, Any]],
    show: Show | None,
) -> Iterator[tuple[str, SeasonClipDetails]]:
    benchmark, controls = open_season_clip_set(folder), read_clip_controls(folder)
    entries = [row for row in benchmark if isinstance(row, Entry)]
    titles = entrants.shown(entrants.creators)
    rows = {_get_clip_key(row, titles): row for row in generated if row["failure_reason"] is None}
    for entry, clip in StoredClipFacts(open_season_clip_facts_table(folder)).find(
        benchmark, entries
    ):
        maker = controls.get(entry.name) or format_creator_with_setting(entry.origin)
        row = rows.get((maker, entry.group))
        facts = tuple(_iter_origin_facts(row)) if row else ()
        spec = show(entry, clip) if show and isinstance(clip, Clip) else None
        yield (
            entry.name,
            SeasonClipDetails(
                facts=(*facts, *((("Licence", entry.licence),) if entry.licence else ())),
                cost_usd=_parse_cost_usd(row),
                took_us=row["took_us"] if row else None,
                player=spec,
            ),
        )


def _get_clip_key(row: Mapping[str, Any], titles: Mapping[str, str]) -> tuple[str, str]:
    """Return the creator, as named on the leaderboard, and the scene of a generated clip."""
    creator = titles.get(row["name"]) or str(row["creator"])
    is_control = row["side"] == ClipClass.CONTROL.value
    maker = creator if is_control else f"{creator}/{row['setting']}"
    return maker, str(row["scene"])


def _iter_origin_facts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Model", str(row["model"] or "")
    yield "Seed", "" if row["seed"] is None else str(row["seed"])
    yield "Parameters", _format_parameters(row["parameters"])
    yield "SHA-256", str(row["sha256"] or "")


def _format_parameters(parameters: str | None) -> str:
    try:
        values = json.loads(parameters or "{}")
    except ValueError:
        return ""
    if not isinstance(values, dict):
        return ""
    return ", ".join(hide_server_addresses(f"{k} {v}") for k, v in values.items() if k != _SERVICE)


def _parse_cost_usd(row: Mapping[str, Any] | None) -> Decimal | None:
    known = row["cost_usd"] if row else None
    return None if known is None else Decimal(str(known))


def _group_generation_failures(
    rows: Sequence[Mapping[str, Any]], entrants: SeasonEntrants
) -> dict[str, dict[str, str]]:
    failures: dict[str, dict[str, str]] = {}
    titles = entrants.shown(entrants.creators)
    for row in rows:
        if row["failure_reason"] is not None:
            maker, scene = _get_clip_key(row, titles)
            reason = f"{row['failure_reason']}: {shorten_reason(hide_server_addresses(row['failure_detail'] or ''))}"
            failures.setdefault(maker, {})[scene] = reason
    return failures


def _read_reviewer_reasons(
    folder: SeasonFolder, entrants: SeasonEntrants, plays: Sequence[SeasonAnswerTable]
) -> dict[tuple[str, str, str], str]:
    """Read the texts of the reviewers' wrong or unreadable answers; baselines have none."""
    settings, titles = read_environment_settings(), entrants.shown(entrants.reviewers)
    reasons = {}
    for play in plays:
        is_generated = play.lineup.creator != NOBODY
        truth = dict(zip(play.lineup.clips, is_generated.tolist(), strict=True))
        for reviewer in entrants.reviewers:
            if reviewer.floor:
                continue
            for planned, row, answer in read_reviewer_answers(
                folder, reviewer, play.condition, settings
            ):
                right = SAID_GENERATED if truth.get(planned.name) else SAID_REAL
                if encode_answer_label(answer) != right and isinstance(row["text"], str):
                    reasons[play.condition, titles[reviewer.name], planned.name] = shorten_reason(
                        row["text"]
                    )
    return reasons


def _count_attempts(
    tries: Sequence[TeamAttempts], plays: Sequence[SeasonAnswerTable]
) -> dict[str, int]:
    """Return the number of submissions by the team of each leaderboard row."""
    return {row: t.submitted for play in plays for t in tries for row in select_team_rows(t, play)}


def _iter_season_notes(
    folder: SeasonFolder, plays: Sequence[SeasonAnswerTable], tries: Sequence[TeamAttempts]
) -> Iterator[str]:
    entrants = folder.require_played()
    yield from iter_log_edit_warnings(read_season_log(folder.path))
    yield from iter_absence_notes(entrants)
    for play in plays:
        yield from iter_similarity_warnings(play, seed=entrants.seed)
        yield from iter_leakage_warnings(folder, play)
    for play in plays[:1]:
        yield from iter_best_attempt_notes(play, tries, seed=entrants.seed)


def _iter_plan_facts(
    folder: SeasonFolder, entrants: SeasonEntrants, recipe: SeasonRecipe
) -> Iterator[tuple[str, str]]:
    budget = recipe.budget
    budgets = (
        ("Maximum number of questions", budget.max_questions),
        ("Maximum cost in US dollars", budget.max_cost_usd),
        ("Maximum number of clips", budget.max_clips),
    )
    limits = [(term, f"{limit:,}") for term, limit in budgets if limit is not None]
    yield from limits
    plan = read_question_plan(folder)
    if plan is None:
        if limits:
            yield "Plan", "the budget is sufficient for all questions"
        return
    titles = entrants.shown(entrants.reviewers)
    yield "Plan", f"{len(plan.chosen):,} of {plan.n_due:,} questions, the most informative first"
    for name, count in plan.left.items():
        yield f"Left out of {titles.get(name, name)}", f"{count:,} questions"
