"""What a page types works: its console blocks are run in order, and print the lines that it shows."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from unreel.benchmarks.columns import KNOWN
from unreel.benchmarks.entry import BenchmarkLayout
from unreel.cli.main import COMMANDS, unreel
from warm import Warm

ROOT = Path(__file__).parents[2]
PAGES = ("docs/arena.md", "docs/bring-your-own.md", "docs/evaluate.md", "docs/outside-reviewers.md")

WRITTEN = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")})


def read_console(page: str) -> list[tuple[str, list[str]]]:
    """Each command of a page's console blocks, with the lines that are shown below it."""
    typed: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                typed.append((line[2:], []))
            elif line.startswith("> "):
                typed[-1] = (f"{typed[-1][0]}\n{line[2:]}", [])
            else:
                typed[-1][1].append(line)
    return typed


def plain(text: str) -> str:
    """A line without what a terminal and a pipe show differently: padding and rules."""
    return " ".join(text.replace("─", " ").split())


def find_absent(shown: list[str], printed: str) -> list[str]:
    """Lines of `shown` that are not printed in their order; `...` stands for any lines."""
    left = iter([plain(line) for line in printed.splitlines()])
    wanted = [plain(line) for line in shown if plain(line) not in {"", "..."}]
    return [line for line in wanted if line not in left]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_works_and_prints_what_is_shown(
    page: str, tmp_path: Path, warm: Warm
) -> None:
    programs, here = tmp_path / "programs", tmp_path / "here"
    programs.mkdir()
    here.mkdir()
    warm.write_program(programs)
    typed = read_console((ROOT / page).read_text(encoding="utf-8"))
    assert len(typed) > 5
    for command, shown in typed:
        if command.startswith("pip install "):
            continue  # .ci/tutorials.py installs
        done = subprocess.run(
            [shutil.which("bash") or "bash", "-c", command],
            cwd=here,
            env={"PATH": f"{programs}:/usr/bin:/bin"},
            check=False,
            capture_output=True,
            text=True,
        )
        told = f"{command}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, told
        assert find_absent(shown, done.stdout + done.stderr) == [], told


def test_the_page_of_columns_has_every_layout_and_every_column() -> None:
    page = (ROOT / "docs" / "bring-your-own.md").read_text(encoding="utf-8")
    assert [layout for layout in BenchmarkLayout if f"`{layout}`" not in page] == []
    names = [name for names in KNOWN.values() for name in names if name[-1] not in "23"]
    assert [name for name in names if f"`{name}`" not in page] == []


def list_commands(page: str) -> list[list[str]]:
    """Words after `unreel` of each command in a console block or in the text, up to a pipe or redirection."""
    typed = [command for command, _ in read_console(page)]
    text = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    typed += [" ".join(code.split()) for code in re.findall(r"`(unreel\s[^`]+)`", text)]
    lines = (re.split(r" (?:#|[|>&;])", line.replace("\\\n", " "))[0] for line in typed)
    found = [line.split() for line in lines]
    return [words[1:] for words in found if words[0] == "unreel" and words[1] in COMMANDS]


def list_unknown_words(words: list[str]) -> list[str]:
    """Options of a command that its parser does not have, or a command that its group does not have."""
    command: click.Command = unreel
    with click.Context(unreel) as context:
        while isinstance(command, click.Group) and words and words[0].isalpha():
            below = command.get_command(context, words[0])
            if below is None:
                return words[:1] * (not command.invoke_without_command)
            command, words = below, words[1:]
    known = {
        "--help",
        *(name for one in command.params for name in (*one.opts, *one.secondary_opts)),
    }
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_every_command_and_option_of_a_page_exists(page: Path) -> None:
    typed = list_commands(page.read_text(encoding="utf-8"))
    unknown = {" ".join(words): list_unknown_words(words) for words in typed}
    assert {line: found for line, found in unknown.items() if found} == {}
