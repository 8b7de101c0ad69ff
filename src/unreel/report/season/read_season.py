"""Data for the pages of a season, read from its folder; no question is sent.

The data are facts, the clips that pages may show, and notes.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from unreel.arena.answers.answer_table import (
    ANSWERED_GENERATED,
    ANSWERED_REAL,
    NOBODY,
    SeasonAnswerTable,
)
from unreel.arena.answers.season_answers import encode_answer_label, read_reviewer_answers
from unreel.arena.boards.ablations import measure_ablation_effects, measure_reviewer_biases
from unreel.arena.run.question_plan import read_question_plan, sum_season_cost_usd
from unreel.arena.season.folder import (
    SeasonEntrants,
    SeasonFolder,
    SeasonRecipe,
    read_stored_season_recipe,
)
from unreel.arena.season.scenes import (
    open_season_clip_facts_table,
    open_season_clip_set,
    read_clip_controls,
)
from unreel.benchmarks.entry import Entry
from unreel.core.clip import Clip, format_creator_with_setting
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


_SERVICE = "service"
"""Parameter with the server that generated a clip; it is not published."""


def read_season_page_data(
    folder: SeasonFolder, *, resamples: int, show: Show | None = None
) -> SeasonPageData:
    """Read everything about a season that its pages show; `show` puts clips next to the pages."""
    boards = read_season_leaderboards(folder, resamples=resamples)
    entrants, recipe = folder.require_played(), read_stored_season_recipe(folder)
    shows_clips = not entrants.is_about_pairs
    rows = (list(folder.made.rows()) if folder.made.exists() else []) if shows_clips else []
    failures: dict[str, dict[str, str]] = {}
    titles = entrants.shown(entrants.creators)
    for row in rows:
        if row["failure_reason"] is not None:
            creator, scene = _get_clip_key(row, titles)
            reason = f"{row['failure_reason']}: {shorten_reason(hide_server_addresses(row['failure_detail'] or ''))}"
            failures.setdefault(creator, {})[scene] = reason
    cost = sum_season_cost_usd(folder, entrants)
    facts = (
        ("Benchmark", recipe.benchmark.rpartition("/")[2]),
        ("Digest of the benchmark", entrants.digest),
        ("Protocol", entrants.protocol),
        ("Seed", str(entrants.seed)),
        ("Cost", "not reported" if cost is None else f"{cost:,.2f} USD, as far as reported"),
    )
    return SeasonPageData(
        name=boards.name,
        facts=facts,
        answer_tables=boards.answer_tables,
        leaderboards=boards.leaderboards,
        clips=dict(_iter_clip_details(folder, entrants, rows, show)) if shows_clips else {},
        creation_failures=failures,
        words=_read_reviewer_reasons(folder, entrants, boards.answer_tables),
        ablations=measure_ablation_effects(boards.answer_tables, knobs=recipe.knobs),
        leanings=tuple(
            bias for answers in boards.answer_tables for bias in measure_reviewer_biases(answers)
        ),
        notes=tuple(iter_absence_notes(entrants)),
        plan=tuple(_iter_plan_facts(folder, entrants, recipe)),
        retired=boards.retired,
        shows_clips=shows_clips,
    )


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
        creator = controls.get(entry.name) or format_creator_with_setting(entry.origin)
        row = rows.get((creator, entry.group))
        facts = [("Licence", entry.licence)] if entry.licence else []
        if row:
            facts = [
                ("Model", str(row["model"] or "")),
                ("Seed", "" if row["seed"] is None else str(row["seed"])),
                ("Parameters", _format_parameters(row["parameters"])),
                ("SHA-256", str(row["sha256"] or "")),
                *facts,
            ]
        spec = show(entry, clip) if show and isinstance(clip, Clip) else None
        known = row["cost_usd"] if row else None
        yield (
            entry.name,
            SeasonClipDetails(
                facts=tuple(facts),
                cost_usd=None if known is None else Decimal(str(known)),
                took_us=row["took_us"] if row else None,
                player=spec,
            ),
        )


def _get_clip_key(row: Mapping[str, Any], titles: Mapping[str, str]) -> tuple[str, str]:
    """Return the creator, as named on the leaderboard, and the scene of a generated clip."""
    creator = titles.get(row["name"]) or str(row["creator"])
    is_control = row["side"] == ClipClass.CONTROL.value
    source = creator if is_control else f"{creator}/{row['setting']}"
    return source, str(row["scene"])


def _format_parameters(parameters: str | None) -> str:
    try:
        values = json.loads(parameters or "{}")
    except ValueError:
        return ""
    if not isinstance(values, dict):
        return ""
    return ", ".join(hide_server_addresses(f"{k} {v}") for k, v in values.items() if k != _SERVICE)


def _read_reviewer_reasons(
    folder: SeasonFolder, entrants: SeasonEntrants, answer_tables: Sequence[SeasonAnswerTable]
) -> dict[tuple[str, str, str], str]:
    """Read the texts of the reviewers' wrong or unreadable answers; baselines have none."""
    settings, titles = read_environment_settings(), entrants.shown(entrants.reviewers)
    reasons = {}
    for answers in answer_tables:
        is_generated = answers.clips.creator != NOBODY
        truth = dict(zip(answers.clips.names, is_generated.tolist(), strict=True))
        for reviewer in entrants.reviewers:
            if reviewer.floor:
                continue
            for planned, row, answer in read_reviewer_answers(
                folder, reviewer, answers.condition, settings
            ):
                right = ANSWERED_GENERATED if truth.get(planned.name) else ANSWERED_REAL
                if encode_answer_label(answer) != right and isinstance(row["text"], str):
                    reasons[answers.condition, titles[reviewer.name], planned.name] = (
                        shorten_reason(row["text"])
                    )
    return reasons


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
