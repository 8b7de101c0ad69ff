"""Implementation of `unreel arena watch`, imported when it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unreel.arena.answers.season_answers import read_season_answers, read_season_clips
from unreel.arena.fairness.holdout import (
    CanaryTestResult,
    HiddenSceneGap,
    compare_hidden_and_known_scenes,
    find_canary_clips,
    find_hidden_scenes,
    measure_canary_answers,
)
from unreel.arena.fairness.similar_reviewers import (
    ReviewerPairSimilarity,
    ReviewerSimilarities,
    compare_reviewer_errors,
)
from unreel.arena.season.folder import SeasonFolder, find_season_folder, read_stored_season_recipe
from unreel.arena.submission.clip_inspection import NearCopyPair, find_copied_season_clips
from unreel.cli.output import echo, print_json, print_message, print_table
from unreel.core.estimate import Estimate
from unreel.core.settings import read_environment_settings
from unreel.engine.storage_access import build_clip_access_settings

_MOST_PAIRS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CheatingFindings:
    """Signs of cheating under one condition of a season."""

    condition: str
    alike: ReviewerSimilarities
    hidden: tuple[HiddenSceneGap, ...]
    canaries: tuple[CanaryTestResult, ...]

    @property
    def n_suspected(self) -> int:
        """Return the number of suspected pairs of reviewers, and of suspected single entrants."""
        known = sum(gap.flagged for gap in self.hidden)
        return len(self.alike.suspected) + known + sum(sung.flagged for sung in self.canaries)


def print_cheating_suspicions(options: Mapping[str, Any], *, as_json: bool) -> int:
    """Print the signs of cheating in a season; return exit status 1 if there are any, otherwise 0."""
    folder = find_season_folder(options["season"], options["out"])
    if options["canaries"]:
        return _print_canary_clips(folder, as_json=as_json)
    findings = _compute_cheating_findings(folder)
    copies: tuple[NearCopyPair, ...] = ()
    if options["clips"]:
        access = build_clip_access_settings(
            read_environment_settings(), trusted=options["trusted"], outside=options["outside"]
        )
        copies = find_copied_season_clips(folder, access)
    n_suspected = sum(finding.n_suspected for finding in findings) + len(copies)
    if as_json:
        print_json({"n_suspected": n_suspected, "conditions": findings, "copies": copies})
    else:
        _print_cheating_findings(findings, copies, looked=options["clips"])
        echo(f"{n_suspected} suspicions")
    return 1 if n_suspected else 0


def _print_canary_clips(folder: SeasonFolder, *, as_json: bool) -> int:
    canaries = find_canary_clips(
        folder.path, read_stored_season_recipe(folder), read_season_clips(folder)
    )
    if as_json:
        print_json(dict.fromkeys(canaries, "generated"))
    else:
        print_message(
            "publish these real clips as generated: a reviewer that repeats it has read the labels"
        )
        echo(*canaries)
    return 0


def _compute_cheating_findings(folder: SeasonFolder) -> list[CheatingFindings]:
    recipe, entrants, lineup = (
        read_stored_season_recipe(folder),
        folder.require_played(),
        read_season_clips(folder),
    )
    hidden = find_hidden_scenes(folder.path, recipe, lineup.scenes)
    canaries = find_canary_clips(folder.path, recipe, lineup)
    findings = []
    for title in entrants.conditions:
        play = read_season_answers(folder, title, lineup=lineup)
        findings.append(
            CheatingFindings(
                condition=title,
                alike=compare_reviewer_errors(play, seed=entrants.seed),
                hidden=compare_hidden_and_known_scenes(play, hidden) if hidden else (),
                canaries=measure_canary_answers(play, canaries) if canaries else (),
            )
        )
    return findings


def _print_cheating_findings(
    findings: Sequence[CheatingFindings], copies: Sequence[NearCopyPair], *, looked: bool
) -> None:
    for finding in findings:
        _print_similar_reviewers(finding.condition, finding.alike)
        for gap in finding.hidden:
            if gap.flagged:
                print_message(
                    f"{finding.condition}: {gap.name} is better on known scenes, by {gap.gap}"
                )
        for sung in finding.canaries:
            if sung.flagged:
                print_message(
                    f"{finding.condition}: {sung.reviewer} repeats the published labels: {sung.followed}"
                )
    if copies:
        rows = [
            {"clip": c.clip, "creator": c.owner, "shows": c.of, "of": c.of_owner or "real"}
            | {"bits": f"{c.bits:g}"}
            for c in copies
        ]
        print_table(("clip", "creator", "shows", "of", "bits"), rows, title="copied clips")
    elif not looked:
        print_message("clips were not compared: add --clips")


def _print_similar_reviewers(condition: str, alike: ReviewerSimilarities) -> None:
    rows = [_build_reviewer_pair_row(pair) for pair in alike.pairs[:_MOST_PAIRS]]
    if rows:
        false_alarms = alike.false_alarms
        rate = f"{false_alarms.value:.1f} %" if isinstance(false_alarms, Estimate) else "unknown"
        title = f"{condition}: most similar reviewers (false alarms in simulated seasons: {rate})"
        print_table(tuple(rows[0]), rows, title=title)


def _build_reviewer_pair_row(pair: ReviewerPairSimilarity) -> dict[str, object]:
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
