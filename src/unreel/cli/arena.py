"""`unreel arena`: creators against reviewers."""

from collections.abc import Mapping
from typing import Final

import click

from unreel.cli.late import LateGroup, Word
from unreel.core.registry import Lazy

_WORDS: Final[Mapping[str, Word]] = {
    "plan": Word(Lazy("unreel.cli.arena_run:plan"), "Tell what a season would make and ask."),
    "run": Word(Lazy("unreel.cli.arena_run:run"), "Play a season, or go on playing it."),
    "people": Word(Lazy("unreel.cli.arena_people:people"), "Let people's votes play as reviewers."),
    "rank": Word(Lazy("unreel.cli.arena_rank:rank"), "Rank who reviewed and who created."),
    "published": Word(
        Lazy("unreel.cli.arena_published:published"), "The papers' tables through the same ranking."
    ),
    "ablations": Word(Lazy("unreel.cli.arena_watch:ablations"), "Tell what one change does."),
    "submit": Word(Lazy("unreel.cli.arena_submit:submit"), "Enter a creator or a reviewer."),
    "withdraw": Word(Lazy("unreel.cli.arena_submit:withdraw"), "Take an entry out."),
    "log": Word(Lazy("unreel.cli.arena_submit:log"), "Show every try and what became of it."),
    "watch": Word(Lazy("unreel.cli.arena_watch:watch"), "Look for foul play."),
    "site": Word(Lazy("unreel.cli.arena_site:site"), "Show seasons as static pages."),
}


@click.command(cls=LateGroup, words=_WORDS)
def arena() -> None:
    """Set creators against reviewers over one frozen benchmark, and rank both.

    SEASON is a TOML file: the benchmark by its hash, who makes clips, who judges them, and how they are asked.
    """
