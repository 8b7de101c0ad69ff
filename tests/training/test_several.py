"""Two processes that share a training learn what one learns that accumulates."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("lance")

from training import lab

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow, pytest.mark.timeout(900)]


def test_two_processes_end_with_the_loss_of_one_that_accumulates(tmp_path: Path) -> None:
    root = lab.write_lab(tmp_path / "lab")
    alone = lab.run(root, tmp_path / "one", optimise={"accumulate": 2}, watch={"every": 3})
    changes = {"devices": {"strategy": "ddp", "count": 2}, "watch": {"every": 3}}
    # Accelerate starts several processes without a GPU through MPI only; torch's own launcher needs none.
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [
            sys.executable,
            *words,
            lab.__file__,
            str(root),
            str(tmp_path / "two"),
            json.dumps(changes),
        ],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    last = [line for line in done.stdout.splitlines() if line.startswith("ended done 6")]
    assert len(last) == 2, done.stdout
    assert float(last[0].split()[-1]) == pytest.approx(alone.loss, abs=1e-4)
    card = json.loads((tmp_path / "two" / "model" / "card.json").read_text())
    assert card["look"]["loss"] == pytest.approx(alone.held_out_loss, abs=1e-4)
