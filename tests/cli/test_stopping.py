"""The first Ctrl-C keeps what is finished; the second ends at once."""

import signal
import subprocess
import sys
import time

JOB = """
import time
from unreel.cli.progress import ProgressMeter
from unreel.cli.process_signals import StopSignalReceived, add_resume_note_on_stop, install_signal_handlers
install_signal_handlers()
try:
    with add_resume_note_on_stop("runs/x", ProgressMeter()):
        print("at work", flush=True)
        time.sleep(60)
except StopSignalReceived as stopped:
    print(*stopped.__notes__, flush=True)
    time.sleep(60)
"""


def test_the_first_ctrl_c_says_how_to_go_on_and_the_second_ends_at_once() -> None:
    command = [sys.executable, "-c", JOB, "eval", "my bench"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "Go on with `unreel eval 'my bench'`\n"
        began_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 128 + signal.SIGINT
        assert time.monotonic() - began_s < 30
        assert process.stderr is not None
        assert "a second Ctrl-C exits immediately" in process.stderr.read()
