"""How commands print: data to stdout, talk to stderr."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click
from pydantic_core import to_jsonable_python

F = TypeVar("F", bound=Callable[..., Any])

_PIPE_WIDTH: Final = 10_000


def json_option(command: F) -> F:
    """Add `--json` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(
        command
    )


def trusted_option(command: F) -> F:
    """Add `--trusted` to a command that opens files."""
    return click.option(
        "--trusted", is_flag=True, help="Open files in this process: for clips of your own only."
    )(command)


def print_json(value: object) -> None:
    """Print `value`, with the dataclasses it holds, as one JSON document."""
    click.echo(json.dumps(to_jsonable_python(value), indent=2, ensure_ascii=False))


def print_table(
    columns: Sequence[str], rows: Iterable[Mapping[str, object]], *, title: str | None = None
) -> None:
    """Print `rows` for a person; a narrow terminal folds cells, a pipe never cuts them."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(row[column])) for column in columns))
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PIPE_WIDTH)
    console.print(table)


def say(text: str) -> None:
    """Talk to the person, on stderr."""
    click.echo(text, err=True)
