"""Kill -9 the driver of runs, again and again, at named steps: `python kill_driver.py --kills 100`.

`--stage eval` kills `unreel eval` over real clips; without it, a bare stage over made-up rows.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import lance
from driver import say
from harness import Tally, asks_in, finish, folders, kill_at, repeats, report
from trial import Bare, Evaluation, Trial, answered, evaluation, tell_apart, undisturbed

KILLS_PER_RUN = 25


def one_run(trial: Trial, folder: Path, tally: Tally, *, kills: int, chance: random.Random) -> None:
    """Kill one run up to `kills` times, then let it end; every promise is checked on the way."""
    before, n_asked_first = answered(trial.rows(folder)), len(asks_in(folder))
    in_flight_in_all = 0
    for _ in range(kills):
        n_asked = len(asks_in(folder))
        killed = kill_at(folder, trial.next_kill(folder, chance), *trial.options)
        if killed is None:
            break
        tally.count(killed.step)
        after, asks = answered(trial.rows(folder)), asks_in(folder)
        lost = [key for key, row in before.items() if after.get(key) != row]
        tally.expect(not lost, f"{len(lost)} committed rows were lost or changed")
        tally.expect(
            len(after) >= len(before) + killed.committed, "fewer rows than the driver said"
        )
        wasted = set(asks[n_asked:]) & set(before)
        tally.expect(not wasted, f"{len(wasted)} committed rows were asked again")
        in_flight = len(set(asks[n_asked:]) - set(after))
        in_flight_in_all += in_flight
        tally.most_in_flight = max(tally.most_in_flight, in_flight)
        tally.expect(in_flight <= trial.most_uncommitted, f"{in_flight} answers were in flight")
        before = after
    finish(folder, *trial.options)
    again = repeats(asks_in(folder)[n_asked_first:])
    tally.runs += 1
    tally.asks += len(asks_in(folder)) - n_asked_first
    tally.asked_again += again
    tally.in_flight += in_flight_in_all
    tally.expect(again <= in_flight_in_all, f"{again} asked again, {in_flight_in_all} in flight")


def kill_drivers(
    trial: Trial, fresh: Iterator[Path], *, truth: object, kills: int, seed: int
) -> Tally:
    """Runs with `kills` kills in all; each ends equal to `truth`, from one that nobody disturbed."""
    tally, chance = Tally(), random.Random(seed)
    while tally.kills < kills and not tally.violations:
        folder, before = next(fresh), tally.kills
        trial.prepare(folder)
        if isinstance(trial, Evaluation) and trial.retry:
            _fail_some(trial, folder)
        planned = min(KILLS_PER_RUN, kills - tally.kills)
        one_run(trial, folder, tally, kills=planned, chance=chance)
        difference = tell_apart(truth, trial.result(folder))
        tally.expect(not difference, difference)
        # Told apart from answers as they were given: a fault of every commit is in `truth` as well.
        tally.expect(not trial.altered(folder), "stored answers are not those that were given")
        tally.expect(tally.kills > before, "a whole run went by without a kill")
        report(tally, kills)
    return tally


def _fail_some(trial: Evaluation, folder: Path) -> None:
    """A first run in which the server refuses about half of the questions."""
    (folder / "refuse").touch()
    finish(folder, *(word for word in trial.options if word != "--retry"))
    (folder / "refuse").unlink()


def control(trial: Trial, folder: Path, *, kills: int, seed: int) -> int:
    """Rows too many after the same kills of a driver that appends plainly: must not be 0."""
    chance = random.Random(seed)
    trial.prepare(folder)
    for _ in range(kills):
        kill_at(folder, f"committed:{chance.randint(1, 5)}", "--plain", *trial.options)
    finish(folder, "--plain", *trial.options)
    keys = lance.dataset(str(folder / "plain.lance")).to_table(columns=["key"])["key"].to_pylist()
    return len(keys) - len(set(keys))


@contextmanager
def _trial(given: argparse.Namespace) -> Iterator[tuple[Trial, Iterator[Path]]]:
    with folders() as (root, fresh):
        if given.stage != "eval":
            yield Bare(n_rows=given.rows), fresh
            return
        settings = {"engine": given.engine, "retry": given.retry}
        with evaluation(root, n_clips=given.rows, **settings) as trial:
            yield trial, fresh


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--stage", choices=["bare", "eval"], default="bare")
    options.add_argument("--engine", choices=["local", "ray"], default="local")
    options.add_argument("--retry", action="store_true", help="kill inside the second try")
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--rows", type=int, default=500, help="clips of each run, or made-up rows")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began_s = time.monotonic()
    with _trial(given) as (trial, fresh):
        truth = undisturbed(trial, next(fresh))
        tally = kill_drivers(trial, fresh, truth=truth, kills=given.kills, seed=given.seed)
        doubled = control(trial, next(fresh), kills=2, seed=given.seed)
    tally.expect(doubled > 0, "the control is clean, so these kills prove nothing")
    seconds = round(time.monotonic() - began_s, 1)
    say(json.dumps(asdict(tally) | {"control_doubled": doubled, "seconds": seconds}))
    return 1 if tally.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
