"""Who mistypes is told what may be meant, and who brings an address how to make a file of it."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from rich.console import Console

from unreel.cli.console import build_terminal_table
from unreel.cli.lazy_group import fit_help_to_terminal

MAIN = "import sys; sys.argv[0] = 'unreel'; from unreel.cli.main import main; main()"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("reveiw clip.mp4", "'review'"),
        ("evaluate clips.csv", "'eval'"),
        ("runs chek somewhere", "'check'"),
        ("probe clip.mp4 --jsn", "'--json'"),
        ("score a.csv --protocol realty", "'reality'"),
        ("benchmarks example lists --out x", "'list'"),
        ("review clip.mp4 --model cion", "'coin'"),
        ("review clip.mp4 --model opnai/gpt-5", "'openai'"),
        ("review clip.mp4 --model coin --condition samplin=paper-8", "'sampling'"),
    ],
)
def test_the_nearest_name_is_told(run, clip: Path, typed: str, meant: str) -> None:
    done = run(*typed.split())
    assert done.returncode == 2
    assert f"Did you mean {meant}?" in done.stderr


@pytest.mark.parametrize("command", ["probe", "frames", "review --model coin"])
def test_an_address_in_place_of_a_clip_says_how_to_get_the_file(run, command: str) -> None:
    done = run(*command.split(), "https://a.example/x/cat.mp4?size=1&b=2")
    assert done.returncode == 2
    assert "is a URL, not a file" in done.stderr
    fetch = "curl -L -o cat.mp4 'https://a.example/x/cat.mp4?size=1&b=2'"
    assert f"Download it first: {fetch}, then name cat.mp4" in done.stderr


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://bucket/cat.mp4", "aws s3 cp s3://bucket/cat.mp4 cat.mp4"),
        ("https://a.example/watch?v=1", "save the video that the page shows"),
        ("https://a.example/$(reboot).mp4", "-o reboot-.mp4 'https://a.example/$(reboot).mp4'"),
    ],
)
def test_what_is_told_to_type_can_be_typed(run, address: str, words: str) -> None:
    assert words in run("probe", address).stderr


def _complete(words: str, folder: Path) -> list[str]:
    asked = {"_UNREEL_COMPLETE": "bash_complete", "COMP_WORDS": words}
    asked["COMP_CWORD"] = str(words.count(" "))
    command = [sys.executable, "-c", MAIN]
    environment = {**os.environ, **asked}  # noqa: TID251  a shell hands its own down
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("unreel ev", ["plain,eval"]),
        ("unreel eval x --model open", ["plain,openai/", "plain,openrouter/"]),
        ("unreel review x --model always", ["plain,always-generated", "plain,always-real"]),
        ("unreel eval cl", ["file,cl"]),
        ("unreel report runs/", ["plain,runs/one", "plain,runs/two"]),
        ("unreel score else", ["dir,else"]),
        ("unreel benchmarks check x --layout fol", ["plain,folders"]),
    ],
)
def test_a_shell_is_offered_what_fits(tmp_path: Path, words: str, offered: list[str]) -> None:
    for name in ("one", "two"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    assert _complete(words, tmp_path) == offered


def _shown(width: int) -> list[str]:
    console = Console(width=width, force_terminal=True, color_system=None)
    heads = ["clip", "label", "location"]
    lines = [["a-clip-of-the-harbour", "real", "clips/real/harbour.mp4"], ["b", "", "b.mp4"]]
    with console.capture() as captured:
        console.print(build_terminal_table(heads, lines, title="two", console=console))
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


@pytest.mark.parametrize("width", [40, 48])
def test_a_table_that_would_cut_words_is_told_row_by_row(width: int) -> None:
    assert _shown(width) == [
        "two",
        "a-clip-of-the-harbour",
        "  label: real",
        "  location: clips/real/harbour.mp4",
        "b",
        "  location: b.mp4",
    ]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_help_fits_the_terminal_and_leaves_room_for_words(width: int) -> None:
    @click.command()
    @click.option("--a-rather-long-option", metavar="VALUE", help="What it is good for. " * 5)
    def command(*, a_rather_long_option: str) -> None:
        """Do it."""

    fitted = fit_help_to_terminal(command)
    with fitted.make_context("do", ["--a-rather-long-option", "x"], terminal_width=width) as made:
        lines = fitted.get_help(made).splitlines()
    assert max(map(len, lines)) <= width
    told = [line for line in lines if "good" in line]
    assert all(line.index(line.strip()) <= max(20, width // 2) for line in told)
