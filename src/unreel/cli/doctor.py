"""`unreel doctor`: check the installation on this machine, and print a fix for each problem."""

import os
import platform
import sys
from importlib.metadata import version

import click

from unreel.api.installation import InstallationCheck, InstallationSettings, check_installation
from unreel.cli.options import settings_options
from unreel.cli.output import echo, json_option, print_json, print_message


@click.command()
@settings_options(InstallationSettings)
@json_option
def doctor(settings: InstallationSettings, *, as_json: bool) -> None:
    """Check the installation, and print how to fix what does not work.

    Exits with status 1 if untrusted files cannot be opened safely, or if an object store that is
    configured or named with --store cannot be used. Extras are optional.
    """
    check = check_installation(settings)
    if as_json:
        print_json(check.to_json())
    else:
        _print_report(check)
        if check.problem:
            print_message(f"unreel: {check.problem}")
    sys.exit(0 if check.is_usable else 1)


def _print_report(check: InstallationCheck) -> None:
    def print_line(what: str, remedy: str, no: str = "no ") -> None:
        if remedy:
            echo(f"  {no}  {what}", f"       {remedy}")
        else:
            echo(f"  yes  {what}")

    echo(f"unreel {version('unreel')}, Python {platform.python_version()}")
    echo(f"{platform.platform()}, {os.cpu_count()} processors")
    echo("", "Protection against untrusted files")
    for layer, remedy in check.layers.items():
        print_line(layer, remedy, "NO ")
    print_line("bubblewrap, for `command:` reviewers", check.program_sandbox[1])
    echo("", "Optional parts")
    for extra in check.extras:
        print_line(f"unreel[{extra.name}]: {extra.brings}", extra.remedy)
    echo("", "Available models")
    for provider in check.providers:
        echo(f"  {'yes' if provider.is_open else 'no '}  {provider}")
    echo("", "Object store")
    if check.store is None:
        echo("  -    not tried: name a bucket with --store s3://bucket/prefix")
    else:
        print_line(check.store.place, check.store.problem, "NO ")
