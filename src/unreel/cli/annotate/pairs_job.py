"""Implementation of `unreel annotate pairs` and `rank`, imported when they run."""

from collections.abc import Mapping
from typing import Any

from unreel.annotation.campaign_state import iter_valid_judgements
from unreel.annotation.pairs import (
    NamePair,
    choose_balanced_pairs,
    choose_informative_pairs,
    iter_preference_wins,
    list_different_score_pairs,
    sample_clips_by_score,
    write_pair_file,
)
from unreel.api.annotation import open_campaign
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.loader import open_benchmark
from unreel.cli.output import echo, print_json, print_message, print_table
from unreel.core.errors import InvalidSettingError
from unreel.core.estimate import Estimate, Measured, describe_interval_coverage

_BATCH = 100


def write_pair_table(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Write the table of chosen clip pairs, and print their number."""
    entries = [
        row
        for row in open_benchmark(options["benchmark"], options["layout"])
        if isinstance(row, Entry)
    ]
    chosen = (
        _select_strict_pairs(entries, options)
        if options["plan"] == "strict"
        else _select_informative_pairs(entries, options)
    )
    if not chosen:
        raise InvalidSettingError(
            "--plan", "no two clips can be compared", "Name a benchmark with scores, or --plan gain"
        )
    out = options["out"]
    write_pair_file(out, chosen)
    clips = {name for pair in chosen for name in pair}
    if as_json:
        document = {"plan": options["plan"], "seed": options["seed"], "out": out}
        print_json(document | {"n_pairs": len(chosen), "n_clips": len(clips)})
        return
    print_message(f"{len(chosen)} pairs of {len(clips)} clips")
    print_message(
        f"next: unreel annotate push {options['benchmark']} --interface preference --pairs {out}"
    )
    echo(out)


def print_clip_ranking(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the clips of a campaign in the order of their strength."""
    campaign = open_campaign(options["campaign"], ledger=options["ledger"])
    ranking = campaign.rank(seed=options["seed"])
    if as_json:
        print_json(ranking)
        return
    print_message(f"{ranking.n_judgements} judgements, {ranking.n_comparisons} comparisons")
    strengths = (clip.strength for clip in ranking.clips)
    print_message(
        f"intervals draw {ranking.drawn}s anew. {describe_interval_coverage(strengths, kind='strength')}"
    )
    rows = [
        {
            "place": clip.place,
            "clip": clip.name,
            "strength": _format_estimate(clip.strength),
            "believed": _format_estimate(clip.believed),
            "share": _format_estimate(clip.share),
        }
        for clip in ranking.clips
    ]
    print_table(("place", "clip", "strength", "believed", "share"), rows)


def _select_strict_pairs(entries: list[Any], options: Mapping[str, Any]) -> list[NamePair]:
    scores = {entry.name: entry.rating.score for entry in entries if entry.rating is not None}
    if options["clips"] == "vrb":
        scores = sample_clips_by_score(scores, seed=options["seed"])
    pairs = list_different_score_pairs(scores)
    return (
        choose_balanced_pairs(pairs, n=options["n"], seed=options["seed"])
        if options["n"]
        else pairs
    )


def _select_informative_pairs(entries: list[Any], options: Mapping[str, Any]) -> list[NamePair]:
    wins: list[NamePair] = []
    if options["campaign"]:
        records = open_campaign(options["campaign"], ledger=options["ledger"]).records
        wins = list(iter_preference_wins(iter_valid_judgements(records)))
    names = [entry.name for entry in entries]
    return choose_informative_pairs(names, wins, n=options["n"] or _BATCH, seed=options["seed"])


def _format_estimate(value: Measured) -> str:
    if isinstance(value, Estimate):
        return f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}] n={value.n}"
    return str(value)
