"""Writer of the site's page `reference/commands` from the parser of the command line."""

import re
from collections.abc import Iterator
from typing import Final

import click

from unreel.cli.main import unreel

HEAD: Final = """# Commands

`unreel COMMAND --help` prints the same texts as this page. Data goes to stdout, messages to stderr.

| status | meaning |
|---|---|
| 0 | success |
| 1 | finished, with failures or findings: each command lists its own |
| 2 | wrong usage, or stopped by the error in the last line |
| 129, 130, 143 | stopped by SIGHUP, Ctrl-C, SIGTERM ([faults](../reliability.md)) |

- `--json` prints one JSON document. Exact fractions are strings, `30000/1001`; fields in microseconds, `start_us`, also exist in seconds, `start_s`.
- Tables fit the width of the terminal. In a pipe or a file they are TSV: one line of column names, a tab between cells, a blank line between tables.
- A mistyped name (a command, an option, a choice, a model, a setting, a column) gives an error that suggests the nearest one.
- A command that needs an [extra](extras.md) which is not installed names it. `unreel doctor` lists all extras.
- [Runs and scores](runs.md) describes resuming, API keys, conditions, comparisons and repair in detail.



## Completion

Bash, zsh and fish complete commands, options, choices, `--model` (baselines, `recorded`, providers), benchmarks (files and folders) and
runs (those in `runs/`). Add the line of your shell to its start-up file:

| shell | file | line |
|---|---|---|
| bash | `~/.bashrc` | `eval "$(_UNREEL_COMPLETE=bash_source unreel)"` |
| zsh | `~/.zshrc` | `eval "$(_UNREEL_COMPLETE=zsh_source unreel)"` |
| fish | `~/.config/fish/completions/unreel.fish` | `_UNREEL_COMPLETE=fish_source unreel \\| source` |

## All commands"""
GUIDES: Final = {
    "annotate": "[run an annotation campaign](../annotation.md)",
    "arena": "[run a season](../arena.md)",
    "benchmarks": "[bring your own clips](../bring-your-own.md), [the catalogue](../catalogue.md)",
    "eval": "[evaluate a model](../evaluate.md), [runs and scores](runs.md)",
    "calibrate": "[false alarms on your own footage](../passport.md)",
    "compare": "[comparisons](runs.md#compare)",
    "curate": "[build a benchmark](../curate.md)",
    "desk": "[the desk](../desk.md)",
    "doctor": "[extras](extras.md), [settings](settings.md)",
    "export": "[other evaluation kits](../ecosystem.md)",
    "frames": "[sampling plans](runs.md#sampling-plans)",
    "models": "[the catalogue](../catalogue.md)",
    "probe": "[threat model](../../SECURITY.md)",
    "report": "[reports](../report.md)",
    "review": "[review a clip](../review.md)",
    "reward": "[use the reward](../reward.md)",
    "runs": "[check and restore](runs.md#check-and-restore)",
    "score": "[answers of your own](runs.md#score-a-file), [judges](runs.md#judges)",
    "seen": "[clips seen before](../seen.md)",
    "serve": "[serve a reviewer](../serving.md)",
    "train": "[train a reviewer](../training.md)",
}
_NOTES: Final = re.compile(r"  \[((?:[^][]|\[\w+\])+)\]$")
"""Default, range and `required` at the end of an option's help."""
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*\b")
_RANGE: Final = re.compile(r"(?:([^<]+)(<=?))?x(?:(<=?|>=?)(.+))?")
_BOUNDS: Final = {"<=": "at most", "<": "less than", ">=": "at least", ">": "more than"}


def write_page() -> str:
    """Return the page: a table of all commands, then a section for each."""
    context = click.Context(unreel, info_name="unreel")
    parts = [HEAD, _write_index(unreel, context)]
    for name, command, below in _iter_commands(unreel, context):
        parts += _write_command(command, below, guide=f"See {GUIDES[name]}.")
    return "\n\n".join(parts) + "\n"


def _iter_commands(
    group: click.Group, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        if command := group.get_command(context, name):
            yield name, command, click.Context(command, parent=context, info_name=name)


def _write_index(group: click.Group, context: click.Context) -> str:
    lines = ["| command | purpose |", "|---|---|"]
    for name, command, below in _iter_commands(group, context):
        path = below.command_path
        words = getattr(group, "words", {})
        line = words[name].line if name in words else command.get_short_help_str(limit=200)
        lines.append(f"| [`{path}`](#{path.replace(' ', '-')}) | {line} |")
    return "\n".join(lines)


def _write_command(command: click.Command, context: click.Context, *, guide: str = "") -> list[str]:
    """Return the parts of a section: heading, usage, help, options, then each command of a group."""
    path = context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    parts = [f"{'#' * len(path.split())} {path}", f"```text\n{usage}\n```"]
    parts += [_format_help(text) for text in (command.help, command.epilog) if text]
    parts += [guide] if guide else []
    rows = [row for option in command.params if (row := _write_option(option, context))]
    if rows:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    if isinstance(command, click.Group):
        parts.append(_write_index(command, context))
        for _, below, inner in _iter_commands(command, context):
            parts += _write_command(below, inner)
    return parts


def _format_help(text: str) -> str:
    """Return a help text as Markdown: each paragraph on one line, options as code."""
    paragraphs = (" ".join(each.split()) for each in text.split("\n\n"))
    return "\n\n".join("`".join(_format_spans(each.split("`"))) for each in paragraphs)


def _format_spans(spans: list[str]) -> Iterator[str]:
    """Yield spans between backticks: every second one is code and stays."""
    for index, span in enumerate(spans):
        text = span.replace("<", "&lt;").replace("*", "\\*")
        yield span if index % 2 else _OPTION.sub(r"`\g<0>`", text)


def _write_option(option: click.Parameter, context: click.Context) -> str:
    """Return an option as a row; an empty text for arguments, which the usage names, and `--help`."""
    record = option.get_help_record(context)
    if record is None or not isinstance(option, click.Option):
        return ""
    names, meaning = record[0].replace(" RANGE", ""), record[1]
    notes: list[str] = []
    while found := _NOTES.search(meaning):
        meaning = meaning[: found.start()]
        notes = [*map(_format_note, found[1].split("; ")), *notes]
    if isinstance(option.type, click.Choice):
        names = names.partition(" [")[0]
        notes.insert(0, f"Choices: {', '.join(f'`{choice}`' for choice in option.type.choices)}.")
    cells = (f"`{names}`", " ".join([_format_help(meaning), *notes]))
    option_cell, meaning_cell = (cell.replace("|", "\\|") for cell in cells)
    return f"| {option_cell} | {meaning_cell} |"


def _format_note(note: str) -> str:
    """Return a default, a range such as `0<=x<=1` or `required` as a sentence."""
    if note.startswith("default: ("):
        note = f"default: {note[10:-1]}"
    if bounds := _RANGE.fullmatch(note):
        low, under, over, high = bounds.groups()
        words = [f"{_BOUNDS[under.replace('<', '>')]} {low}"] if low else []
        words += [f"{_BOUNDS[over]} {high}"] if high else []
        note = ", ".join(words)
    return f"{note[0].upper()}{note[1:]}."
