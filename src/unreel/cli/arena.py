"""`unreel arena`: creators against reviewers."""

from collections.abc import Mapping
from typing import Final

import click

from unreel.cli.late import LateGroup, Word
from unreel.core.registry import Lazy

_WORDS: Final[Mapping[str, Word]] = {
    "plan": Word(
        Lazy("unreel.cli.arena_run:plan"), "Print the clips and questions that a season needs."
    ),
    "run": Word(Lazy("unreel.cli.arena_run:run"), "Run a season, or resume it."),
    "people": Word(Lazy("unreel.cli.arena_people:people"), "Add human votes as reviewers."),
    "rank": Word(Lazy("unreel.cli.arena_rank:rank"), "Rank reviewers and creators."),
    "published": Word(
        Lazy("unreel.cli.arena_published:published"), "Rank the papers' tables in the same way."
    ),
    "ablations": Word(
        Lazy("unreel.cli.arena_watch:ablations"), "Measure the effect of single changes."
    ),
    "submit": Word(Lazy("unreel.cli.arena_submit:submit"), "Enter a creator or a reviewer."),
    "withdraw": Word(Lazy("unreel.cli.arena_submit:withdraw"), "Withdraw an entry."),
    "log": Word(Lazy("unreel.cli.arena_submit:log"), "Print every attempt and its result."),
    "watch": Word(Lazy("unreel.cli.arena_watch:watch"), "Search for cheating."),
    "site": Word(Lazy("unreel.cli.arena_site:site"), "Write seasons as static pages."),
}


@click.command(cls=LateGroup, words=_WORDS)
def arena() -> None:
    """Run creators against reviewers on one frozen benchmark, and rank both.

    SEASON is a TOML file with the benchmark's hash, the creators, the reviewers and the conditions.
    """
