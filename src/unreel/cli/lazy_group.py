"""Command groups that import a command at its first use, so that `--help` is fast."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import click

from unreel.core.registry import LazyImport

_REFUSED = re.compile(r"^'(?P<typed>[^']*)' is not ")
_NARROWEST = 12


class _NarrowHelpFormatter(click.HelpFormatter):
    """Help formatter that narrows the column of names on a narrow terminal."""

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        width = max(_NARROWEST, min(col_max, self.width * 2 // 5))
        super().write_dl(rows, col_max=width, col_spacing=col_spacing)


class _NarrowHelpContext(click.Context):
    formatter_class = _NarrowHelpFormatter


def fit_help_to_terminal(command: click.Command) -> click.Command:
    """Let the help of `command` and its subcommands adapt to a narrow terminal; return `command`."""
    command.context_class = _NarrowHelpContext
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        fit_help_to_terminal(below)
    return command


def build_unknown_command_error(
    typed: str, known: Iterable[str], context: click.Context
) -> click.UsageError:
    """Build the error for an unknown command, with the nearest known command."""
    return click.UsageError(
        f"No such command {typed!r}.{_format_suggestion(typed, known)}", context
    )


def is_near_known_name(typed: str, known: Iterable[str]) -> bool:
    """Return whether `typed` is similar to one of the `known` names."""
    return bool(get_close_matches(typed, [*known], n=1))


def suggest_nearest_choice(error: click.ClickException) -> click.ClickException:
    """Return `error`; if it rejects a value of a choice option, name the nearest valid value in it."""
    if not isinstance(error, click.BadParameter) or error.param is None:
        return error
    refused, kind = _REFUSED.match(error.message), error.param.type
    if refused is None or not isinstance(kind, click.Choice):
        return error
    message = error.message + _format_suggestion(refused["typed"], map(str, kind.choices))
    return click.BadParameter(message, error.ctx, error.param, error.param_hint)


def _format_suggestion(typed: str, known: Iterable[str]) -> str:
    close = get_close_matches(typed, [*known], n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command as an import target, with a help line that is available without importing the command."""

    target: LazyImport
    line: str


class LazyCommandGroup(click.Group):
    """Click group that imports the commands of `words` at their first use, and suggests near names."""

    def __init__(self, *, words: Mapping[str, LazyCommand] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.words = words or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return [*self.words, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        word = self.words.get(cmd_name)
        command = super().get_command(ctx, cmd_name) if word is None else word.target.load()
        return None if command is None else fit_help_to_terminal(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and name.isidentifier() and not ctx.resilient_parsing:
            raise build_unknown_command_error(name, known, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.words:
            super().format_commands(ctx, formatter)
            return
        with formatter.section("Commands"):
            formatter.write_dl([(name, word.line) for name, word in self.words.items()])
