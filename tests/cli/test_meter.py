"""What a person is told while a run goes on."""

import io
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
from unreel.cli.output import IdleOutputNotifier
from unreel.cli.progress import ProgressMeter
from unreel.cli.safe_streams import OUTPUT
from unreel.engine.progress import Progress, format_cost, format_duration, format_progress_line


def test_the_line_tells_rate_share_time_left_money_and_causes() -> None:
    progress = Progress(
        done=90, failures=Counter({"rate-limited": 8, "refused": 2}), totals={"cost_usd": 1.2345}
    )
    line = format_progress_line("answers", progress, due=400, seconds=20)
    assert line == (
        "answers: 100 of 400, 5.0/s, 1 min 00 s left, 1.23 USD, "
        "10 failed (8 rate-limited, 2 refused)"
    )


def test_what_is_not_known_is_not_told() -> None:
    assert format_progress_line("clips", Progress(done=3), due=None, seconds=0) == "clips: 3, 0.0/s"
    assert "left" not in format_progress_line("clips", Progress(done=3), due=3, seconds=1)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (250, "4 min 10 s"), (7500, "2 h 05 min")]
)
def test_time_is_told_as_people_say_it(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_small_money_keeps_its_places() -> None:
    assert [format_cost(amount) for amount in (0.00125, 12.5)] == ["0.0013 USD", "12.50 USD"]


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


def test_each_of_several_runs_is_counted_on_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressMeter(clock=lambda: 0.0, terminal=False) as meter:
        meter.begin("1 of 2, coin: ")
        meter.step("clips", Progress(done=3, totals={"cost_usd": 1.0}))
        assert meter.spell_rows() == "3 rows of clips"
        meter.begin("2 of 2, motion: ")
        assert (meter.spell_rows(), meter.cost_usd) == ("", None)
    assert capsys.readouterr().err == "1 of 2, coin: clips: 3, 0.0/s, 1.00 USD\n"


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


def test_silence_is_told_once_for_each_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for screen, expected in ((Terminal(), ["working ...", "working ..."]), (io.StringIO(), [])):
        monkeypatch.setattr("sys.stderr", screen)
        watch = IdleOutputNotifier(seconds=0.12)
        watch.start()
        time.sleep(0.5)
        OUTPUT.note_output()
        time.sleep(0.5)
        watch.stop()
        assert screen.getvalue().splitlines() == expected


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
