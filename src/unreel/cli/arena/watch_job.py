"""Implementation of `unreel arena watch`, imported when it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unreel.arena.answers.lineup import read_lineup
from unreel.arena.answers.read_play import read_play
from unreel.arena.fairness.holdout import (
    CanaryAnswers,
    HiddenGap,
    compare_hidden,
    find_canaries,
    find_hidden,
    measure_canary_answers,
)
from unreel.arena.fairness.similar_reviewers import (
    ReviewerSimilarities,
    SimilarReviewers,
    find_alike,
)
from unreel.arena.season.folder import SeasonFolder, find_folder
from unreel.arena.season.stored_recipe import read_stored_recipe
from unreel.arena.submission.copies import NearCopy, find_season_copies
from unreel.cli.output import echo, print_json, print_message, print_table
from unreel.core.estimate import Estimate
from unreel.core.settings import read_settings
from unreel.engine.resolve_location import open_access

_MOST_PAIRS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionFindings:
    """Findings under one condition."""

    condition: str
    alike: ReviewerSimilarities
    hidden: tuple[HiddenGap, ...]
    canaries: tuple[CanaryAnswers, ...]

    @property
    def n_suspected(self) -> int:
        """Return the number of suspected pairs and entrants."""
        known = sum(gap.flagged for gap in self.hidden)
        return len(self.alike.suspected) + known + sum(sung.flagged for sung in self.canaries)


def print_suspicions(options: Mapping[str, Any], *, as_json: bool) -> int:
    """Print what looks like foul play, and give 1 where anything does."""
    folder = find_folder(options["season"], options["out"])
    if options["canaries"]:
        return _print_canaries(folder, as_json=as_json)
    found = _compute_condition_findings(folder)
    copies: tuple[NearCopy, ...] = ()
    if options["clips"]:
        access = open_access(
            read_settings(), trusted=options["trusted"], outside=options["outside"]
        )
        copies = find_season_copies(folder, access)
    n_suspected = sum(each.n_suspected for each in found) + len(copies)
    if as_json:
        print_json({"n_suspected": n_suspected, "conditions": found, "copies": copies})
    else:
        _print_findings(found, copies, looked=options["clips"])
        echo(f"{n_suspected} suspicions")
    return 1 if n_suspected else 0


def _print_canaries(folder: SeasonFolder, *, as_json: bool) -> int:
    canaries = find_canaries(folder.path, read_stored_recipe(folder), read_lineup(folder))
    if as_json:
        print_json(dict.fromkeys(canaries, "generated"))
    else:
        print_message(
            "publish these real clips as generated: a reviewer that repeats it has read the labels"
        )
        echo(*canaries)
    return 0


def _compute_condition_findings(folder: SeasonFolder) -> list[ConditionFindings]:
    recipe, entrants, lineup = (
        read_stored_recipe(folder),
        folder.require_played(),
        read_lineup(folder),
    )
    hidden = find_hidden(folder.path, recipe, lineup.scenes)
    canaries = find_canaries(folder.path, recipe, lineup)
    found = []
    for title in entrants.conditions:
        play = read_play(folder, title, lineup=lineup)
        found.append(
            ConditionFindings(
                condition=title,
                alike=find_alike(play, seed=entrants.seed),
                hidden=compare_hidden(play, hidden) if hidden else (),
                canaries=measure_canary_answers(play, canaries) if canaries else (),
            )
        )
    return found


def _print_findings(
    found: Sequence[ConditionFindings], copies: Sequence[NearCopy], *, looked: bool
) -> None:
    for each in found:
        _print_alike(each.condition, each.alike)
        for gap in each.hidden:
            if gap.flagged:
                print_message(
                    f"{each.condition}: {gap.name} is better on known scenes, by {gap.gap}"
                )
        for sung in each.canaries:
            if sung.flagged:
                print_message(
                    f"{each.condition}: {sung.reviewer} repeats the published labels: {sung.followed}"
                )
    if copies:
        rows = [
            {"clip": c.clip, "creator": c.owner, "shows": c.of, "of": c.of_owner or "real"}
            | {"bits": f"{c.bits:g}"}
            for c in copies
        ]
        print_table(("clip", "creator", "shows", "of", "bits"), rows, title="copied clips")
    elif not looked:
        print_message("clips were not looked at: add --clips")


def _print_alike(condition: str, alike: ReviewerSimilarities) -> None:
    rows = [_build_pair_row(pair) for pair in alike.pairs[:_MOST_PAIRS]]
    if rows:
        told = alike.false_alarms
        rate = f"{told.value:.1f} %" if isinstance(told, Estimate) else "unknown"
        title = f"{condition}: reviewers most alike (false alarms in simulated seasons: {rate})"
        print_table(tuple(rows[0]), rows, title=title)


def _build_pair_row(pair: SimilarReviewers) -> dict[str, object]:
    shared = pair.shared_errors
    return {
        "first": pair.first,
        "second": pair.second,
        "same errors": f"{shared.value:.1f} %" if isinstance(shared, Estimate) else "",
        "shared": pair.n_shared,
        "expected": f"{pair.expected_shared:.1f}",
        "p": f"{pair.p_corrected:.3g}",
        "suspected": "yes" if pair.suspected else "",
    }
