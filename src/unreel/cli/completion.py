"""Shell completion for models, runs and files; docs/reference/commands.md explains its set-up."""

from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

_RUNS: Final = "runs"
"""Default folder of the runs of `unreel eval`."""


def list_model_completions(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return shell completions for a model: names of baselines, `recorded`, and `PROVIDER/`."""
    from unreel.reviewers.endpoint.model_address import PROVIDERS
    from unreel.reviewers.registry import ENDPOINT, REVIEWERS

    names = [name for name in REVIEWERS.names() if name != ENDPOINT]
    names += [f"{provider}/" for provider in sorted(PROVIDERS)]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def list_run_completions(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return completions for a run: the runs in the folder `runs` or, if none matches, folders."""
    folders = sorted(Path(_RUNS).iterdir()) if Path(_RUNS).is_dir() else []
    runs = [str(folder) for folder in folders if folder.is_dir()]
    items = [CompletionItem(run) for run in runs if run.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="dir")]


def list_path_completions(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return a completion item that lets the shell complete files and folders itself."""
    return [CompletionItem(incomplete, type="file")]
