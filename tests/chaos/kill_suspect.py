"""Kill -9 whoever holds a suspect: `python kill_suspect.py --engine ray --kills 200`.

The harness marks innocent rows before a run; a worker that starts one stays in it and is killed, in
company and alone, as often as the rule says that an innocent must bear; then the mark is taken away.
Other rows are guilty: they kill their worker each time. At the end exactly the guilty are quarantined.
The control is a rule for which one death alone is enough: under the same kills it must condemn innocents.
"""

import argparse
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from driver import questions, say
from harness import (
    Driver,
    Tally,
    asks_with_asker,
    driver,
    folders,
    kill_and_confirm,
    report,
    state_of,
)
from kill_worker import mark, spread
from trial import Bare

from unreel.engine.crash_suspects import DEATHS_ALONE
from unreel.engine.start_log import DEATHS_IN_COMPANY

MOST_KILLS = DEATHS_IN_COMPANY + DEATHS_ALONE - 1
"""Deaths that an innocent must bear: a row that is then left alone once comes back."""
VICTIMS_PER_RUN = 8
VICTIMS_PER_GUILTY = 4
MOST_DRIVERS = 4 * VICTIMS_PER_RUN


def kill_holders(started: Driver, tally: Tally, dead: set[int]) -> None:
    """Kill every worker that stays in a marked row, until that row has died often enough.

    `dead` are askers of earlier drivers of this run; it grows.
    """
    while started.process.poll() is None:
        asks = set(asks_with_asker(started.folder))
        dead |= {pid for _, pid in asks - dead_asks(asks, dead) if state_of(pid) in "ZX"}
        deaths = Counter(key for key, _ in dead_asks(asks, dead))
        for held in (started.folder / "hold").iterdir():
            if deaths[held.name] >= MOST_KILLS:
                held.unlink()
        held_now = {pid for key, pid in asks if (started.folder / "hold" / key).exists()}
        for pid in held_now - dead:
            with suppress(ProcessLookupError):  # a guilty row was quicker
                kill_and_confirm(pid)
                tally.count("suspect's worker")
        time.sleep(0.01)


def dead_asks(asks: set[tuple[str, int]], dead: set[int]) -> set[tuple[str, int]]:
    """The asks of those who are dead."""
    return {(key, pid) for key, pid in asks if pid in dead}


def kill_suspects(
    fresh: Iterator[Path], *, engine: str, kills: int, n_rows: int, seed: int
) -> Tally:
    """Runs with at least `kills` kills in all; each condemns its guilty rows and nobody else."""
    tally, chance = Tally(), random.Random(seed)
    while tally.kills < kills and not tally.violations:
        left = -(-(kills - tally.kills) // MOST_KILLS)
        condemned, guilty = one_run(
            next(fresh), tally, engine=engine, n_rows=n_rows, chance=chance, victims=left
        )
        tally.expect(condemned >= guilty, f"{len(guilty - condemned)} guilty rows went free")
        innocents = condemned - guilty
        tally.expect(not innocents, f"{len(innocents)} innocents were quarantined")
        report(tally, kills)
    return tally


def one_run(  # noqa: PLR0913  a trial has its size, its chance and its rule
    folder: Path,
    tally: Tally,
    *,
    engine: str,
    n_rows: int,
    chance: random.Random,
    victims: int,
    rule: Sequence[str] = (),
) -> tuple[set[str], set[str]]:
    """The rows that were quarantined, and those that are guilty; every row must be there."""
    trial = Bare(n_rows=n_rows, engine=engine)
    keys = [row["key"] for row in questions(n_rows)]
    victims = min(victims, VICTIMS_PER_RUN)
    chosen = spread(keys, victims + max(1, victims // VICTIMS_PER_GUILTY), chance)
    chance.shuffle(chosen)
    marked, guilty = chosen[:victims], chosen[victims:]
    mark(folder, marked)
    mark(folder, guilty, "guilty")
    dead: set[int] = set()
    for _ in range(MOST_DRIVERS):
        with driver(folder, *trial.options, *rule) as started:
            kill_holders(started, tally, dead)
        if started.process.returncode != -signal.SIGKILL:
            break  # On `local` the driver itself is the worker of all that is not alone.
    tally.runs += 1
    tally.asks += len(asks_with_asker(folder))
    tally.expect(started.process.returncode == 0, started.errors)
    rows = trial.rows(folder)
    tally.expect(set(rows) == set(keys), f"{len(rows)} rows of {n_rows}")
    tally.expect(not trial.altered(folder), "stored answers are not those that were given")
    reasons = {key: row["failure_reason"] for key, row in rows.items() if row["failure_reason"]}
    tally.expect(set(reasons.values()) <= {"quarantined"}, f"reasons: {set(reasons.values())}")
    return set(reasons), set(guilty)


def control(folder: Path, *, engine: str, n_rows: int, seed: int) -> int:
    """Innocents that are condemned where one death alone is enough: must not be 0."""
    condemned, guilty = one_run(
        folder,
        Tally(),
        engine=engine,
        n_rows=n_rows,
        chance=random.Random(seed),
        victims=1,
        rule=("--deaths-alone", "1"),
    )
    return len(condemned - guilty)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--engine", choices=["local", "ray"], default="ray")
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--rows", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began_s = time.monotonic()
    with folders() as (_, fresh):
        tally = kill_suspects(
            fresh, engine=given.engine, kills=given.kills, n_rows=given.rows, seed=given.seed
        )
        condemned = control(next(fresh), engine=given.engine, n_rows=given.rows, seed=given.seed)
    tally.expect(condemned > 0, "the control condemns nobody, so these kills prove nothing")
    seconds = round(time.monotonic() - began_s, 1)
    say(json.dumps(asdict(tally) | {"control_condemned": condemned, "seconds": seconds}))
    return 1 if tally.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
