"""Kill -9 the driver of runs, again and again, at named steps, and count what each kill costs."""

import random
from collections.abc import Iterator
from pathlib import Path

from chaos.harness import Tally, asks_in, finish, kill_at, repeats
from chaos.trial import Evaluation, Trial, answered, tell_apart

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
        tally.expect(in_flight <= trial.most_uncommitted, f"{in_flight} answers were in flight")
        before = after
    finish(folder, *trial.options)
    again = repeats(asks_in(folder)[n_asked_first:])
    tally.asked_again += again
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
    return tally


def _fail_some(trial: Evaluation, folder: Path) -> None:
    """A first run in which the server refuses about half of the questions."""
    (folder / "refuse").touch()
    finish(folder, *(word for word in trial.options if word != "--retry"))
    (folder / "refuse").unlink()
