"""Shell completion of models, benchmarks and runs; docs/reference/commands.md explains its set-up."""

from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

_RUNS: Final = "runs"
"""Default folder of the runs of `unreel eval`."""


def complete_models(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of baselines, `recorded`, and `provider/`."""
    from unreel.reviewers.endpoint.providers import PROVIDERS
    from unreel.reviewers.registry import ENDPOINT, REVIEWERS

    names = [name for name in REVIEWERS.names() if name != ENDPOINT]
    names += [f"{provider}/" for provider in sorted(PROVIDERS)]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def complete_runs(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the runs in the default directory; if none matches, complete directories."""
    folders = sorted(Path(_RUNS).iterdir()) if Path(_RUNS).is_dir() else []
    runs = [str(folder) for folder in folders if folder.is_dir()]
    found = [CompletionItem(run) for run in runs if run.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="dir")]


def complete_paths(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete files and directories with the shell's own completion."""
    return [CompletionItem(incomplete, type="file")]
