"""How commands print: data to stdout, talk to stderr."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click
from pydantic_core import to_jsonable_python

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """Add `--json` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(
        command
    )


def print_json(value: object) -> None:
    """Print `value`, with the dataclasses it holds, as one JSON document."""
    click.echo(json.dumps(to_jsonable_python(value), indent=2, ensure_ascii=False))


def say(text: str) -> None:
    """Talk to the person, on stderr."""
    click.echo(text, err=True)
