"""The `unreel` command: a table of words, each loaded when it is typed."""

import sys
from importlib.metadata import version
from typing import Final

import click

from unreel.core.errors import UnreelError
from unreel.core.registry import Lazy

COMMANDS: Final = {
    "frames": Lazy("unreel.cli.frames:frames"),
    "probe": Lazy("unreel.cli.probe:probe"),
    "published": Lazy("unreel.cli.published:published"),
    "score": Lazy("unreel.cli.score:score"),
}


class _LateGroup(click.Group):
    """A group that imports a command only when somebody names it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return sorted(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        cmd_name: str,
    ) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name)
        return None if lazy is None else lazy.load()


@click.command(cls=_LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("unreel"), prog_name="unreel")
def unreel() -> None:
    """Tell whether a video looks AI-generated, where, when and why."""


def main() -> None:
    """Run the command line; an error that unreel raises on purpose ends it with status 2."""
    try:
        unreel()
    except UnreelError as error:
        click.echo(f"unreel: {error}", err=True)
        sys.exit(2)
