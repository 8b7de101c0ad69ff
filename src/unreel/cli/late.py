"""Groups of commands that are loaded when they are typed, so that help stays quick."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from unreel.cli.helping import no_command, wrap_help
from unreel.core.registry import LazyImport


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command: where it lives, and its line in the help of its group, which loads none of them."""

    target: LazyImport
    line: str


class LazyGroup(click.Group):
    """Group that imports a command at its first use; `words` are its commands by name."""

    def __init__(self, *, words: Mapping[str, LazyCommand], **given: Any) -> None:
        super().__init__(**given)
        self.words = words

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(self.words)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        cmd_name: str,
    ) -> click.Command | None:
        word = self.words.get(cmd_name)
        return None if word is None else wrap_help(word.target.load())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.words and name.isidentifier() and not ctx.resilient_parsing:
            raise no_command(name, self.words, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, word.line) for name, word in self.words.items()])
