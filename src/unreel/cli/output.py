"""Output of commands: data to stdout, messages to stderr, and no control sequences.

Names, answers, signers and server messages are untrusted text. Only this module, `console` and
`safe_streams` print. Every text is sanitised with `core.safe_text` here; each input line is
printed as one line.
"""

import json
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import click

from unreel.cli.safe_streams import OUTPUT, is_stream_unwritten
from unreel.core.safe_text import sanitise_line
from unreel.core.span import add_seconds_fields
from unreel.core.table_formats import build_csv_table, build_latex_table


def format_rerun_command(*more: str) -> str:
    """Format the command that the user typed as a shell command, with the options `more` appended."""
    typed = [part for part in sys.argv[1:] if part not in more]
    return f"`{shlex.join(['unreel', *typed, *more])}`"


def format_retry_command(run: str) -> str:
    """Format the command that retries the failed questions of the run named `run`."""
    return f"`{shlex.join(['unreel', 'eval', '--out', run, '--retry-failed'])}`"


Form = Literal["text", "csv", "latex"]
"""Output format of a table: for a terminal, a spreadsheet or a paper."""
F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """Add `--json` to a command."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print the result to stdout as one JSON document."
    )(command)


def table_format_option(command: F) -> F:
    """Add `--format` to a command that prints tables."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(get_args(Form)),
        default="text",
        show_default=True,
        help="Format of the printed tables, unless --json is given.",
    )(command)


def print_json(value: object) -> None:
    """Print `value`, with the dataclasses it contains, as one JSON document.

    Control characters are escaped, so that no information is lost. Each time in microseconds, such
    as `start_us`, is also printed in seconds, as `start_s`.
    """
    from pydantic_core import to_jsonable_python

    is_unicode = sys.stdout.encoding.lower().startswith("utf")
    document = add_seconds_fields(to_jsonable_python(value))
    text = json.dumps(document, indent=2, ensure_ascii=not is_unicode)
    lines = (_escape_control_characters(line) for line in text.split("\n"))
    click.echo("\n".join(lines), file=sys.stdout)


def _escape_control_characters(line: str) -> str:
    if (clean := sanitise_line(line)) == line:
        return line
    pairs = zip(line, clean, strict=True)
    return "".join(was if was == is_ else json.dumps(was)[1:-1] for was, is_ in pairs)


def print_table(
    columns: Sequence[str],
    rows: Iterable[Mapping[str, object]],
    *,
    title: str | None = None,
    form: Form = "text",
) -> None:
    """Print `rows` in the format `form`; "text" is a table on a terminal and tab-separated on a pipe."""
    match form:
        case "csv":
            click.echo(build_csv_table(columns, rows), file=sys.stdout, nl=False)
        case "latex":
            click.echo(
                build_latex_table(columns, rows, caption=title or ""), file=sys.stdout, nl=False
            )
        case "text":
            _print_text_table(columns, rows, title=title)


def is_stdout_terminal() -> bool:
    """Return whether stdout is a terminal and not a pipe or file."""
    from unreel.cli.console import open_console

    return open_console().is_terminal


def _print_text_table(
    columns: Sequence[str], rows: Iterable[Mapping[str, object]], *, title: str | None
) -> None:
    from unreel.cli.console import open_console

    console = open_console()
    lines = [[sanitise_line(str(row[column])) for column in columns] for row in rows]
    if console.is_terminal:
        from unreel.cli.console import build_terminal_table

        heads = [sanitise_line(column.replace("_", " ")) for column in columns]
        console.print(
            build_terminal_table(heads, lines, title=sanitise_line(title or ""), console=console)
        )
        return
    if title:
        print_message(title)
    # A pipe gets one tab between cells, one line per row, and a blank line before each table
    # after the first output.
    text = "".join("\t".join(cells) + "\n" for cells in [map(sanitise_line, columns), *lines])
    click.echo(text if is_stream_unwritten(sys.stdout) else f"\n{text}", file=sys.stdout, nl=False)


def echo(*lines: object) -> None:
    """Print data for a person on stdout, one line for each argument."""
    for line in lines:
        click.echo(sanitise_line(str(line)), file=sys.stdout)


class IdleOutputNotifier:
    """Background thread that prints "working ..." on a terminal after a period without output.

    Args:
        seconds: Period without output before the message.
    """

    def __init__(self, *, seconds: float = 1.5) -> None:
        self._seconds = seconds
        self._ended = threading.Event()

    def start(self) -> None:
        """Start the thread that prints "working ..." if nothing is printed; only if stderr is a terminal."""
        if sys.stderr.isatty():
            threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        """Stop printing "working ...", for example because a server now waits for requests."""
        self._ended.set()

    def _watch(self) -> None:
        OUTPUT.note_output()
        told_s = -1.0
        while not self._ended.wait(self._seconds / 6):
            is_silent = time.monotonic() - OUTPUT.last_s >= self._seconds
            if is_silent and OUTPUT.last_s != told_s:
                print_message("working ...")
                told_s = OUTPUT.last_s


SILENCE = IdleOutputNotifier()
"""Idle notifier of this process."""


def print_message(*lines: str) -> None:
    """Print messages to stderr, one line for each argument."""
    for line in lines:
        click.echo(sanitise_line(line), file=sys.stderr)
