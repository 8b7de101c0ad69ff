"""Implementation of `unreel arena people`, imported when it runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from unreel.api.annotation import open_campaign
from unreel.arena.answers.season_answers import (
    HumanClipVote,
    iter_benchmark_votes,
    read_campaign_votes,
    write_season_votes,
)
from unreel.arena.season.clip_set import open_season_clip_set
from unreel.arena.season.folder import SeasonFolder, find_season_folder
from unreel.benchmarks.entry import Entry
from unreel.benchmarks.votes import join_votes_with_entries
from unreel.cli.output import print_json, print_message
from unreel.core.errors import InvalidSettingError


def store_season_votes(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Store the votes about a season's clips in its folder; print the numbers of stored and other votes."""
    if options["campaign"] and options["votes"]:
        raise InvalidSettingError(
            "--votes", "votes are taken from one place at a time", "Leave out --votes or --campaign"
        )
    folder = find_season_folder(options["season"], options["out"])
    folder.require_played()
    source, ballots = _read_human_votes(folder, options)
    known = {row.name for row in open_season_clip_set(folder) if isinstance(row, Entry)}
    votes = [vote for vote in ballots if vote.clip in known]
    if not votes:
        raise InvalidSettingError(
            "votes",
            f"no vote of {source} is about a clip of the season",
            "Ask people about the clips in the season's folder `set`, or name other votes",
        )
    write_season_votes(folder, source, votes)
    document = {
        "source": source,
        "n_people": len({vote.voter for vote in votes}),
        "n_votes": len(votes),
        "n_clips": len({vote.clip for vote in votes}),
        "n_elsewhere": len(ballots) - len(votes),
    }
    if as_json:
        print_json(document)
        return
    print_message(
        f"{document['n_votes']} votes of {document['n_people']} people on {document['n_clips']} clips, from {source}",
        f"{document['n_elsewhere']} votes are about clips that the season does not play",
    )


def _read_human_votes(
    folder: SeasonFolder, options: Mapping[str, Any]
) -> tuple[str, list[HumanClipVote]]:
    if options["campaign"]:
        campaign = open_campaign(options["campaign"], ledger=options["ledger"])
        ballots = read_campaign_votes(campaign.records, named=options["named"])
        return f"campaign {options['campaign']}", ballots
    if options["votes"]:
        path = Path(options["votes"])
        joined = join_votes_with_entries(open_season_clip_set(folder), path)
        return path.name, [
            HumanClipVote(entry.name, vote.voter, vote.label)
            for entry, votes in joined.ballots
            for vote in votes
        ]
    entries: Iterable[Entry] = (
        row for row in open_season_clip_set(folder) if isinstance(row, Entry)
    )
    return "the benchmark", list(iter_benchmark_votes(entries))
