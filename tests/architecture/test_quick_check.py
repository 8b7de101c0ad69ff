"""The quick check says in words that no environment has the pinned versions."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_without_an_environment_no_raw_error_of_the_shell_is_printed(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    done = subprocess.run(
        [tmp_path / ".ci/run", "--quick"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": "/bin/false"},  # nothing is installed
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "The pinned versions are installed nowhere yet" in done.stdout
    assert "dev/bin/python: No such file" not in done.stderr
