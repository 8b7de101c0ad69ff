"""What a person is told while a run goes on."""

import os
import pty
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from synthesise import ClipRecipe, synthesise
from unreel.cli.progress import ProgressMeter
from unreel.engine.progress import Progress, ProgressLine, format_duration, format_progress_line


def test_the_line_tells_rate_share_time_left_money_and_causes() -> None:
    progress = Progress(
        done=90, failures=Counter({"rate-limited": 8, "refused": 2}), totals={"cost_usd": 1.2345}
    )
    line = format_progress_line("answers", progress, due=400, rate=5.0)
    assert line == (
        "answers: 100 of 400, 5.0/s, 1 min 00 s left, 1.23 USD, "
        "10 failed (8 rate-limited, 2 refused)"
    )


def test_the_time_left_counts_down_between_commits_and_never_climbs() -> None:
    now_s = [0.0]
    line = ProgressLine(clock=lambda: now_s[0])
    line.expect("answers", 100)
    left = []
    for now_s[0], done in ((10.0, 10), (40.0, None), (90.0, None), (110.0, None), (300.0, 20)):
        if done:
            line.step("answers", Progress(done=done))
        left.append(line.text().rpartition(", ")[2])
    assert left[:4] == ["1 min 30 s left", "1 min 00 s left", "10 s left", "time left not known"]
    assert line.text() == "answers: 20 of 100, 2/min, 38 min 40 s left"  # of the last minutes


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (250, "4 min 10 s"), (7500, "2 h 05 min")]
)
def test_time_is_told_as_people_say_it(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_off_a_terminal_lines_are_ten_seconds_apart(capsys: pytest.CaptureFixture[str]) -> None:
    now_s = [0.0]
    with ProgressMeter(clock=lambda: now_s[0], terminal=False) as meter:
        meter.expect("answers", 100)
        for second in range(1, 26):
            now_s[0] = float(second)
            meter.step("answers", Progress(done=second, totals={"cost_usd": second / 100}))
    told = capsys.readouterr()
    assert told.out == ""
    assert [line.partition(" of ")[0] for line in told.err.splitlines()] == [
        "answers: 1",
        "answers: 11",
        "answers: 21",
    ]
    assert meter.cost_usd == 0.25


def test_off_a_terminal_a_run_that_does_not_move_is_heard_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unreel.cli.progress.PIPE_PAUSE_S", 0.05)
    with ProgressMeter(terminal=False) as meter:
        meter.tell("reading bench")
        time.sleep(0.5)
    assert capsys.readouterr().err == "reading bench\n"


def test_on_a_terminal_one_line_is_rewritten(tmp_path: Path) -> None:
    for number, side in enumerate(("real", "generated/Veo")):
        path = tmp_path / "bench" / side / f"c{number}.mp4"
        path.parent.mkdir(parents=True)
        path.write_bytes(synthesise(ClipRecipe(n_frames=8, seed=number)))
    asked = ["eval", "bench", "--protocol", "reality", "--model", "coin", "--out", "r"]
    code = f"import sys; from unreel.cli.main import main; sys.argv[1:] = {asked}; main()"
    shown = watch_program(code, tmp_path)
    assert b"getting ready" in shown
    assert b"reading bench" in shown
    assert b"clips: 0 of 2" in shown
    assert b"clips: 2 of 2" in shown
    assert b"answers: 2 of 2" in shown
    assert b"\x1b[2K" in shown
    assert b"2 new answers" in shown


def test_a_command_that_prints_nothing_says_that_it_works(tmp_path: Path) -> None:
    code = """
import time, unreel.cli.main as program
program.unreel = lambda **_: time.sleep(2.2)
program.main()
"""
    assert watch_program(code, tmp_path) == b"working ...\r\n"


def watch_program(code: str, folder: Path) -> bytes:
    """What a Python program shows on its terminal."""
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b"".join(read_all(terminal))
    os.close(terminal)
    assert process.returncode == 0, shown
    return shown


def read_all(terminal: int) -> Iterator[bytes]:
    """What is written to the terminal until nobody holds its other side."""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            return
        if not piece:
            return
        yield piece
