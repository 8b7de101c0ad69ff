"""`unreel doctor`: what works on this machine, and what to install for the rest."""

import importlib.util
import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Final

import click

from unreel.cli.output import json_option, print_json, say
from unreel.core.errors import SandboxError
from unreel.core.settings import read_settings
from unreel.media.sandbox import LAYERS, Sandbox

EXTRAS: Final[Mapping[str, str]] = {
    "arena": "evalica",
    "eval": "lance",
    "inspect": "inspect_ai",
    "ray": "ray",
    "sts": "sentence_transformers",
}
"""Extras, and the package that shows whether each is there."""


@click.command()
@json_option
def doctor(*, as_json: bool) -> None:
    """Tell what works on this machine. Ends with status 1 when files cannot be opened safely."""
    read_settings()
    layers, problem = _protection()
    extras = {name: importlib.util.find_spec(module) is not None for name, module in EXTRAS.items()}
    if as_json:
        print_json(
            {
                "unreel": version("unreel"),
                "python": platform.python_version(),
                "system": platform.platform(),
                "processors": os.cpu_count(),
                "sandbox": {"active": sorted(layers), "problem": problem},
                "extras": extras,
            }
        )
    else:
        click.echo(f"unreel {version('unreel')}, Python {platform.python_version()}")
        click.echo(f"{platform.platform()}, {os.cpu_count()} processors")
        for layer in LAYERS:
            click.echo(f"  {'yes' if layer in layers else 'NO '}  {layer}")
        for name, there in extras.items():
            click.echo(f"  {'yes' if there else 'no '}  unreel[{name}]")
        if problem:
            say(f"unreel: {problem}")
    sys.exit(0 if set(LAYERS) <= layers else 1)


def _protection() -> tuple[frozenset[str], str]:
    try:
        with Sandbox() as sandbox:
            return sandbox.protection().active, ""
    except SandboxError as error:
        return frozenset(), str(error)
