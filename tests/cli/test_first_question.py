"""The script behind the start-up figures of `docs/performance.md` still runs."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "first_question.py"


def test_every_command_is_timed_to_its_first_question(tmp_path: Path) -> None:
    unreel = tmp_path / "unreel"
    unreel.write_text(f"#!{sys.executable}\nfrom unreel.cli.main import main\nmain()\n")
    unreel.chmod(0o755)
    command = [sys.executable, str(SCRIPT), "--starts", "1", "--json", str(unreel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    [figure] = json.loads(done.stdout).values()
    assert figure["starts"] == 1
    assert 0 < figure["asked_s"] < 60
    assert figure["cpu_s"] > 0
