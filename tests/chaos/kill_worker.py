"""Kill -9 the processes that do the work: `python kill_worker.py --engine ray --kills 100`.

The harness marks rows before a run; a worker that starts a marked row stays in it, so the kill lands
in the middle of known work. `ray`: the actor's process; Ray gives its block to another. `local`: the
confined child; its row becomes a failure, which a second run with `--retry` replaces.
"""

import argparse
import json
import random
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from subprocess import Popen

sys.path.insert(0, str(Path(__file__).parent))

from driver import IN_FLIGHT, questions, say
from harness import (
    HERE,
    Tally,
    asked_again,
    asks_in,
    asks_with_pid,
    driver,
    finish,
    folders,
    kill_and_confirm,
    rows_in,
)

from unreel.engine.stage import Row

KILLS_PER_RUN = 25
LOST_PER_RAY_KILL = 4 * IN_FLIGHT
"""Rows of the blocks that one worker holds: two at work, and their rows that were finished."""


def kill_held(folder: Path, process: Popen[str], tally: Tally) -> None:
    """Kill whoever starts a marked row, once for each mark, until the driver ends."""
    killed: set[int] = set()
    while process.poll() is None:
        for key, pid in asks_with_pid(folder):
            mark = folder / "hold" / key
            # A worker that died for one marked row may have held a second: that one comes again.
            if pid not in killed and mark.exists():
                killed.add(pid)
                kill_and_confirm(pid)
                mark.unlink()
                tally.kills += 1
        time.sleep(0.01)


def disturbed_run(folder: Path, tally: Tally, *options: str, marked: list[str]) -> None:
    (folder / "hold").mkdir()
    for key in marked:
        (folder / "hold" / key).touch()
    with driver(folder, *options) as process:
        assert process.stdout is not None
        drain = threading.Thread(target=process.stdout.read, daemon=True)
        drain.start()
        kill_held(folder, process, tally)
        drain.join()
    tally.expect(process.returncode == 0, (folder / "stderr.log").read_text()[-800:])


def kill_workers(engine: str, *, kills: int, rows: int, seed: int) -> Tally:
    """Runs with `kills` kills in all; each ends equal to one that nobody disturbed."""
    tally, chance = Tally(), random.Random(seed)
    stage = ("--stage", f"{HERE / 'confined.py'}:Confined") if engine == "local" else ()
    options = ("--rows", str(rows), "--engine", engine, *stage)
    keys = [row["key"] for row in questions(rows)]
    with folders() as fresh:
        calm = next(fresh)
        finish(calm, "--rows", str(rows))
        truth = rows_in(calm)
        while tally.kills < kills and not tally.violations:
            folder, before = next(fresh), tally.kills
            marked = _spread(keys, min(KILLS_PER_RUN, kills - tally.kills), chance)
            disturbed_run(folder, tally, *options, marked=marked)
            n_killed = tally.kills - before
            tally.expect(n_killed == len(marked), f"{n_killed} kills, {len(marked)} wanted")
            if engine == "local":
                _expect_failures(folder, tally, marked)
                finish(folder, *options, "--retry")
            _expect_truth(folder, tally, truth, n_killed if engine == "ray" else 0)
    return tally


def _spread(keys: list[str], n: int, chance: random.Random) -> list[str]:
    """`n` keys far from each other: a row that dies with two neighbours and once more is guilty."""
    share = len(keys) // n
    return [keys[share * turn + chance.randrange(max(1, share // 8))] for turn in range(n)]


def _expect_failures(folder: Path, tally: Tally, marked: list[str]) -> None:
    left = rows_in(folder)
    reasons = {key: row["failure_reason"] for key, row in left.items() if row["failure_reason"]}
    tally.expect(set(reasons) == set(marked), "the failures are not the rows that were killed")
    tally.expect(set(reasons.values()) <= {"worker-died"}, f"reasons: {set(reasons.values())}")


def _expect_truth(folder: Path, tally: Tally, truth: dict[str, Row], ray_kills: int) -> None:
    drop = ("attempt",)
    plain = {key: {n: v for n, v in row.items() if n not in drop} for key, row in truth.items()}
    left = {
        key: {n: v for n, v in row.items() if n not in drop} for key, row in rows_in(folder).items()
    }
    tally.expect(left == plain, "the final table differs from the undisturbed")
    again = asked_again(folder)
    tally.asks += len(asks_in(folder))
    tally.asked_again += again
    if ray_kills:
        most = ray_kills * LOST_PER_RAY_KILL
        tally.expect(again <= most, f"{again} rows were asked again after {ray_kills} kills")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--engine", choices=["local", "ray"], default="ray")
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--rows", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began_s = time.monotonic()
    tally = kill_workers(given.engine, kills=given.kills, rows=given.rows, seed=given.seed)
    say(json.dumps(asdict(tally) | {"seconds": round(time.monotonic() - began_s, 1)}))
    return 1 if tally.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
