"""Strangers' words cannot steer the terminal they are shown on, whichever command shows them."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chat import refuses, serve_chat
from synthesise import ClipRecipe, synthesise
from unreel.core.safe_text import sanitise_line
from warm import Warm

PAYLOADS = {
    "clear": "\x1b[2J",
    "home": "\x1b[H",
    "conceal": "\x1b[8m",
    "title": "\x1b]0;x\x07",
    "link": "\x1b]8;;x:\x1b\\",
    "clipboard": "\x1b]52;c;eA==\x07",
    "device": "\x1bPx\x1b\\",
    "application": "\x1b_x\x1b\\",
    "privacy": "\x1b^x\x1b\\",
    "reset": "\x1bc",
    "c1 sequence": "\x9b2J",
    "c1 command": "\x9d0;x\x9c",
    "c1 device": "\x90x\x9c",
    "return": "\rok",
    "backspace": "\x08\x08",
    "bell": "\x07",
    "shift": "\x0e",
    "delete": "\x7f",
    "line": "\nFORGED",
    "next line": "\x85FORGED",
    "line separator": "\u2028FORGED",
    "override": "\u202e",
    "isolate": "\u2066",
    "half": "\udcff",
}
STORM = "a" + "".join(PAYLOADS.values()) + ".mp4"
UTTERABLE = STORM.replace("\udcff", "").replace(".mp4", "")
CHOSEN_BY_RICH = re.compile(r"\x1b\[(?!8m)[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[12][KA]|\r(?!ok)")
FILM = synthesise(ClipRecipe(width=96, height=64, n_frames=12))

Tell = Callable[..., str]


def assert_plain(told: str) -> None:
    """All of it is text, and no line of it was forged."""
    assert [repr(line) for line in told.split("\n") if sanitise_line(line) != line] == []
    assert not any(line.startswith("FORGED") for line in told.splitlines())


@pytest.fixture
def tell(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    warm: Warm,
    monkeypatch: pytest.MonkeyPatch,
) -> Tell:
    """Runs `unreel` on a terminal and gives all that it told, without the colours of its own."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "300")
    program = str(warm.write_program(tmp_path_factory.mktemp("program")))

    def command(*arguments: object, code: str = "") -> str:
        typed = [sys.executable, "-c", code] if code else [program, *map(str, arguments)]
        told = _on_terminal(typed, tmp_path)
        shown = CHOSEN_BY_RICH.sub("", told)
        assert "Traceback" not in shown or code, shown
        assert_plain(shown)
        return shown

    return command


def _on_terminal(typed: list[str], folder: Path) -> str:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(typed, cwd=folder, stdout=theirs, stderr=theirs)
    os.close(theirs)
    told = b""
    while True:
        try:
            told += os.read(ours, 65536)
        except OSError:  # how a terminal says that nobody writes to it any more
            break
    os.close(ours)
    child.wait()
    return told.decode()


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """Real clips and generated ones, plain ones and ones with a storm for a name."""
    for side in ("real", "generated/Sora"):
        folder = tmp_path / "bench" / side
        folder.mkdir(parents=True)
        (folder / f"{side[0]}{STORM}").write_bytes(FILM)
        (folder / f"{side[0]}.mp4").write_bytes(FILM + side.encode())
    return tmp_path / "bench"


def test_every_payload_in_a_file_name_is_shown_as_a_mark(tell: Tell, tmp_path: Path) -> None:
    for name, payload in PAYLOADS.items():
        (tmp_path / f"{name} {payload}.mp4").write_bytes(FILM)
    (tmp_path / f"broken {UTTERABLE}.mp4").write_bytes(b"nothing")
    told = tell("probe", "--trusted", *sorted(path.name for path in tmp_path.iterdir()))
    for name in PAYLOADS:
        assert f"{name} \ufffd" in told
    assert "broken a\ufffd[2J" in told
    assert told.count("12 frames") == len(PAYLOADS)


def test_a_reviewer_of_a_recorded_file_and_its_words_are_shown_plainly(
    tell: Tell, tmp_path: Path
) -> None:
    (tmp_path / "c.mp4").write_bytes(FILM)
    said = f"FAKE <coordinates>[0, 0, 9, 9]</coordinates> <explanation>{UTTERABLE}</explanation>"
    lines = [
        {"clip": "c.mp4", "protocol": "trace", "text": said.replace("\nFORGED", "")},
        {"clip": "c.mp4", "protocol": "realism", "failure": "refused", "detail": UTTERABLE},
    ]
    told = tmp_path / f"{UTTERABLE}.jsonl"
    told.write_text("\n".join(json.dumps(line) for line in lines))
    shown = tell("review", "--trusted", "c.mp4", "--model", "recorded", "--recorded", told.name)
    assert "recorded:a\ufffd[2J" in shown
    assert "refused: a\ufffd[2J" in shown


def test_a_run_with_hostile_names_is_shown_plainly_by_all_that_read_it(
    tell: Tell, benchmark: Path, tmp_path: Path
) -> None:
    pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
    run = "runs/a [2J"
    asked = ("eval", benchmark, "--protocol", "reality", "--model", "always-real", "--trusted")
    assert "without control characters" in tell(*asked, "--out", f"runs/{UTTERABLE}")
    assert "always-real" in tell(*asked, "--out", run)
    assert "always-real" in tell("runs")
    assert "accuracy" in tell("score", run)
    assert "\ufffd[2J" in tell("report", run, "--out", f"page {UTTERABLE}", "--media", "none")
    assert "\ufffd[2J" in tell("export", run, "--to", "jsonl", "--out", f"{UTTERABLE}.jsonl")


def test_a_curation_of_hostile_files_is_told_plainly(tell: Tell, benchmark: Path, tmp_path) -> None:
    pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")
    key = json.dumps(UTTERABLE)
    (tmp_path / "odd.toml").write_text(
        f"name = 'x'\n[source]\npath = 'bench'\n[{key}]\n{key} = 1\n"
    )
    assert "\ufffd[2J" in tell("curate", "run", "odd.toml")
    recipe = f"name = {key}\n[source]\npath = 'bench'\nlicence = {key}\n[freeze]\nversion = '1'\n"
    (tmp_path / "recipe.toml").write_text(recipe)
    tell("curate", "run", "recipe.toml", "--trusted")
    assert "moved" not in tell("curate", "diff", benchmark, benchmark)


@pytest.mark.parametrize(
    "typed",
    [
        (UTTERABLE,),
        ("probe", f"--{UTTERABLE}"),
        ("frames", UTTERABLE, "--sampling", UTTERABLE),
        ("review", UTTERABLE, "--protocol", UTTERABLE),
        ("review", UTTERABLE, "--model", UTTERABLE),
        ("review", UTTERABLE, "--model", "coin", "--recorded", UTTERABLE),
        ("review", UTTERABLE, "--model", "coin", "--nframe", UTTERABLE),
        ("eval", UTTERABLE, "--protocol", "reality", "--model", "coin"),
        ("eval", "--recipe", UTTERABLE),
        ("score", UTTERABLE, "--protocol", "reality"),
        ("runs", UTTERABLE),
        ("report", UTTERABLE),
        ("export", UTTERABLE, "--to", "jsonl", "--out", UTTERABLE),
        ("curate", "inject", UTTERABLE, "--category", UTTERABLE),
        ("curate", "step", UTTERABLE, UTTERABLE),
        ("curate", "audit", UTTERABLE),
    ],
    ids=lambda typed: " ".join(part for part in typed if part is not UTTERABLE) or "unknown",
)
def test_what_was_typed_wrongly_is_told_plainly(tell: Tell, typed) -> None:
    assert tell(*typed)


@pytest.fixture
def refusing() -> Iterator[str]:
    """A server that refuses everything, with a storm of words."""
    with serve_chat(lambda *_: refuses(400, UTTERABLE)) as port:
        yield f"compatible/tiny@http://127.0.0.1:{port}/v1"


def test_the_words_of_a_server_are_shown_plainly(tell: Tell, refusing: str, tmp_path: Path) -> None:
    (tmp_path / "c.mp4").write_bytes(FILM)
    told = tell("review", "--trusted", "c.mp4", "--model", refusing, "--protocol", "reality")
    assert "\ufffd[2J" in told


def test_the_signer_of_a_file_is_shown_plainly(tell: Tell, tmp_path: Path) -> None:
    pytest.importorskip("c2pa", reason="c2pa-python is not installed: unreel[provenance]")
    from credentials import sign

    (tmp_path / "c.mp4").write_bytes(sign(FILM, signer=UTTERABLE[:60]))
    told = tell("review", "--trusted", "c.mp4", "--model", "always-real")
    assert "signed as a\ufffd[2J" in told


@pytest.mark.parametrize("last", ["raise RuntimeError(t)", "warn(t)", "getLogger().error(t)"])
def test_tracebacks_warnings_and_logs_of_others_are_plain(tell: Tell, last: str) -> None:
    code = (
        "from unreel.cli.safe_streams import sanitise_std_streams; from warnings import warn; "
        f"from logging import getLogger; sanitise_std_streams(); t = {UTTERABLE.replace('FORGED', '')!r}; {last}"
    )
    assert "\ufffd[2J" in tell(code=code)


@pytest.mark.parametrize(
    "words",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "C"},
    ],
    ids=str,
)
def test_no_encoding_ends_a_command_and_json_stays_exact(
    start, words, tmp_path: Path, monkeypatch
) -> None:
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    (tmp_path / STORM).write_bytes(FILM)
    shown = start("frames", "--trusted", STORM)
    assert (shown.returncode, "\x1b" in shown.stdout + shown.stderr) == (0, False), shown.stderr
    kept = start("probe", "--trusted", "--json", STORM)
    assert kept.returncode == 0, kept.stderr
    assert kept.stdout.isascii()
    (row,) = json.loads(kept.stdout)
    assert os.fsencode(row["file"]) == os.fsencode(STORM)
