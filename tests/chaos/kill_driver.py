"""Kill -9 the driver of runs, again and again, at named steps: `python kill_driver.py --kills 100`."""

import argparse
import json
import random
import sys
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import lance
from driver import IN_FLIGHT, PACE_ROWS, say
from harness import Tally, asked_again, asks_in, finish, folders, kill_at, rows_in

KILLS_PER_RUN = 12
MOST_UNCOMMITTED = IN_FLIGHT + 4 * PACE_ROWS
"""Rows in stages, in the committer's hands (at most two batches) and waiting for it (two)."""


def one_run(folder: Path, tally: Tally, *, kills: int, rows: int, chance: random.Random) -> None:
    """Kill one run up to `kills` times, then let it end; every promise is checked on the way."""
    size = ("--rows", str(rows))
    before = rows_in(folder)
    for _ in range(kills):
        n_asked = len(asks_in(folder))
        step = chance.choice(["written", "committed", "asked"])
        most = rows // 10 if step == "asked" else 5
        said = kill_at(folder, f"{step}:{chance.randint(1, most)}", *size)
        if said is None:
            break
        tally.kills += 1
        after, asks = rows_in(folder), asks_in(folder)
        lost = [key for key, row in before.items() if after.get(key) != row]
        tally.expect(not lost, f"{len(lost)} committed rows were lost or changed")
        tally.expect(len(after) >= len(before) + said, "fewer rows than the driver said")
        wasted = set(asks[n_asked:]) & set(before)
        tally.expect(not wasted, f"{len(wasted)} committed rows were asked again")
        in_flight = len(set(asks[n_asked:]) - set(after))
        tally.most_in_flight = max(tally.most_in_flight, in_flight)
        tally.expect(in_flight <= MOST_UNCOMMITTED, f"{in_flight} answers were in flight")
        before = after
    finish(folder, *size)
    tally.asks += len(asks_in(folder))
    tally.asked_again += asked_again(folder)


def kill_drivers(*, kills: int, rows: int, seed: int) -> Tally:
    """Runs with `kills` kills in all; each ends equal to one that nobody disturbed."""
    tally, chance = Tally(), random.Random(seed)
    with folders() as fresh:
        calm = next(fresh)
        finish(calm, "--rows", str(rows))
        truth = rows_in(calm)
        tally.expect(len(truth) == rows, f"the undisturbed run has {len(truth)} rows")
        while tally.kills < kills:
            folder = next(fresh)
            planned = min(KILLS_PER_RUN, kills - tally.kills)
            one_run(folder, tally, kills=planned, rows=rows, chance=chance)
            tally.expect(rows_in(folder) == truth, "the final table differs from the undisturbed")
    return tally


def control(*, kills: int, rows: int, seed: int) -> int:
    """Rows too many after the same kills of a driver that appends plainly: must not be 0."""
    chance = random.Random(seed)
    with folders() as fresh:
        folder = next(fresh)
        for _ in range(kills):
            kill_at(folder, f"committed:{chance.randint(1, 5)}", "--plain", "--rows", str(rows))
        finish(folder, "--plain", "--rows", str(rows))
        table = lance.dataset(str(folder / "answers.lance")).to_table(columns=["key"])
        keys = table.column("key").to_pylist()
        return len(keys) - len(set(keys))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--rows", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began_s = time.monotonic()
    tally = kill_drivers(kills=given.kills, rows=given.rows, seed=given.seed)
    doubled = control(kills=2, rows=given.rows, seed=given.seed)
    tally.expect(doubled > 0, "the control is clean, so these kills prove nothing")
    seconds = round(time.monotonic() - began_s, 1)
    say(json.dumps(asdict(tally) | {"control_doubled": doubled, "seconds": seconds}))
    return 1 if tally.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
