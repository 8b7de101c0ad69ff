"""Kill -9 the processes that do the work: `python kill_worker.py --engine ray --kills 100`.

Bare stage: the harness marks rows before a run; a worker that starts a marked row stays in it, so the
kill lands in the middle of known work. `ray`: the actor's process; Ray gives its block to another.
`local`: the confined child; its row becomes a failure, which a second run with `--retry` replaces.

`--stage eval`, `unreel eval` over real clips. `ray`: the server holds back its answer to a marked
question, and the process at the other end of that connection is killed. `local`: each time the run has
come a stretch further, a child that decodes a clip is stopped, seen to stand still in its work, and
killed; every fifth time it is the zygote that makes these children.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from driver import say
from eval_trial import IN_FLIGHT
from harness import (
    HERE,
    Driver,
    Tally,
    asks_in,
    asks_with_asker,
    children,
    descendants,
    driver,
    finish,
    folders,
    kill_and_confirm,
    owner_of_port,
    repeats,
    report,
    state_of,
)
from trial import Bare, Evaluation, evaluation, tell_apart, undisturbed

KILLS_PER_RUN = 25
ZYGOTE_EVERY = 5
MOST_RUNS = 12
LOST_PER_RAY_KILL = 4 * IN_FLIGHT
"""Rows of the blocks that one worker holds: two at work, and their rows that were finished."""


def kill_held(started: Driver, tally: Tally, *, by_port: bool, forgive: bool = True) -> None:
    """Kill whoever starts a marked row: once for each mark, or each time where none is forgiven."""
    killed: set[int] = set()
    while started.process.poll() is None:
        for key, asker in asks_with_asker(started.folder):
            mark = started.folder / "hold" / key
            if asker in killed or not mark.exists():
                continue
            # A worker that died for one marked row may have held a second: that one comes again.
            kin = {started.process.pid} | descendants(started.process.pid)
            pid = owner_of_port(asker, kin) if by_port else asker
            if pid is not None:
                killed.add(asker)
                kill_and_confirm(pid)
                tally.count("worker")
                if forgive:
                    mark.unlink()
        time.sleep(0.01)


def kill_decoders(started: Driver, tally: Tally, *, kills: int, n_rows: int) -> None:
    """Kill `kills` processes that decode, one for each stretch of the run."""
    left = [round((turn + 0.5) * n_rows / (kills + 1)) for turn in range(kills)]
    turn = 0
    while started.process.poll() is None:
        if turn < kills and started.committed >= left[turn]:
            kill = _kill_zygote if turn % ZYGOTE_EVERY == ZYGOTE_EVERY - 1 else _kill_decoder
            if kill(started):
                tally.count(kill.__name__.removeprefix("_kill_"))
                turn += 1
        time.sleep(0.001)


def _zygotes(started: Driver) -> list[int]:
    commands = {pid: Path(f"/proc/{pid}/cmdline") for pid in children(started.process.pid)}
    found = []
    for pid, command in commands.items():
        with suppress(OSError):
            if b"sandbox.zygote" in command.read_bytes():
                found.append(pid)
    return found


def _kill_zygote(started: Driver) -> bool:
    # Only one that has children is at work: another may still be warming up.
    zygote = next((pid for pid in _zygotes(started) if children(pid)), None)
    if zygote is None:
        return False
    with suppress(ProcessLookupError):
        kill_and_confirm(zygote)
        return True
    return False


def _kill_decoder(started: Driver) -> bool:
    """Stop a child first: only one that stands still was alive, and is killed within its work."""
    for pid in (child for zygote in _zygotes(started) for child in children(zygote)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            while state_of(pid) not in "TZX":
                time.sleep(0.001)
            stood_still = state_of(pid) == "T"
            kill_and_confirm(pid)
            if stood_still:
                return True
    return False


def kill_workers(
    trial: Bare | Evaluation, fresh: Iterator[Path], *, kills: int, seed: int
) -> Tally:
    """Runs with `kills` kills in all; each ends equal to one on `local` that nobody disturbed."""
    tally, chance, calm = Tally(), random.Random(seed), next(fresh)
    truth = undisturbed(replace(trial, engine="local"), calm)
    keys = [key for key, row in trial.rows(calm).items() if "reviewer" in row]
    while tally.kills < kills and not tally.violations:
        folder, before = next(fresh), tally.kills
        trial.prepare(folder)
        marked = spread(keys, min(KILLS_PER_RUN, kills - tally.kills), chance)
        if not _kills_decoders(trial):
            mark(folder, marked)
        with driver(folder, *trial.options) as started:
            if _kills_decoders(trial):
                kill_decoders(started, tally, kills=len(marked), n_rows=2 * len(keys))
            else:
                kill_held(started, tally, by_port=isinstance(trial, Evaluation))
        tally.runs += 1
        tally.expect(started.process.returncode == 0, started.errors)
        n_killed = tally.kills - before
        # Decoders live for milliseconds: a run may end before as many were caught.
        enough = n_killed == len(marked) or _kills_decoders(trial)
        tally.expect(enough, f"{n_killed} kills, {len(marked)} wanted")
        tally.expect(tally.runs <= MOST_RUNS, f"{tally.kills} kills in {tally.runs} runs")
        if trial.engine == "local":
            _expect_failures(trial, folder, tally, marked, n_killed)
            finish(folder, *trial.options, "--retry")
        difference = tell_apart(truth, trial.result(folder))
        tally.expect(not difference, difference)
        tally.expect(not trial.altered(folder), "stored answers are not those that were given")
        again, most = repeats(asks_in(folder)), n_killed * LOST_PER_RAY_KILL
        tally.expect(again <= most, f"{again} rows were asked again after {n_killed} kills")
        tally.asks += len(asks_in(folder))
        tally.asked_again += again
        report(tally, kills)
    return tally


def spread(keys: list[str], n: int, chance: random.Random) -> list[str]:
    """`n` keys far from each other, so that no worker holds two of them."""
    share = len(keys) // n
    return [keys[share * turn + chance.randrange(max(1, share // 8))] for turn in range(n)]


def _kills_decoders(trial: Bare | Evaluation) -> bool:
    return isinstance(trial, Evaluation) and trial.engine == "local"


def mark(folder: Path, keys: Sequence[str], how: str = "hold") -> None:
    """Whoever starts one of these rows from now on stays in it, or dies of it where they are `guilty`."""
    (folder / how).mkdir(exist_ok=True)
    for key in keys:
        (folder / how / key).touch()


def _expect_failures(
    trial: Bare | Evaluation, folder: Path, tally: Tally, marked: Sequence[str], n_killed: int
) -> None:
    left = trial.rows(folder)
    reasons = {key: row["failure_reason"] for key, row in left.items() if row["failure_reason"]}
    tally.expect(set(reasons.values()) <= {"worker-died"}, f"reasons: {set(reasons.values())}")
    if isinstance(trial, Bare):
        tally.expect(set(reasons) == set(marked), "the failures are not the rows that were killed")
    else:  # a child may have sent its reply before it was stopped; a zygote takes two with it
        tally.expect(len(reasons) <= 2 * n_killed, f"{len(reasons)} failures, {n_killed} kills")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--stage", choices=["bare", "eval"], default="bare")
    options.add_argument("--engine", choices=["local", "ray"], default="ray")
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--rows", type=int, default=500, help="clips of each run, or made-up rows")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    began_s = time.monotonic()
    with open_trial(given.stage, given.engine, n_rows=given.rows) as (trial, fresh):
        tally = kill_workers(trial, fresh, kills=given.kills, seed=given.seed)
    say(json.dumps(asdict(tally) | {"seconds": round(time.monotonic() - began_s, 1)}))
    return 1 if tally.violations else 0


@contextmanager
def open_trial(
    stage: str, engine: str, *, n_rows: int
) -> Iterator[tuple[Bare | Evaluation, Iterator[Path]]]:
    """The trial, and fresh folders for its runs."""
    with folders() as (root, fresh):
        if stage == "eval":
            with evaluation(root, n_clips=n_rows, engine=engine) as trial:
                yield trial, fresh
        else:
            confined = f"{HERE / 'confined.py'}:Confined" if engine == "local" else ""
            yield Bare(n_rows=n_rows, engine=engine, stage=confined), fresh


if __name__ == "__main__":
    raise SystemExit(main())
