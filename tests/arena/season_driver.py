"""Plays a season in a process of its own, tells each step of its commits, and can be made to stand still at one.

`python season_driver.py SEASON OUT [STEP:N]`
"""

import sys
import time
from collections import Counter
from pathlib import Path

from unreel.arena.run.job import SeasonJob, run_season
from unreel.arena.season.folder import read_season, resolve_season_folder
from unreel.core.settings import read_environment_settings
from unreel.engine.progress import JobCallbacks
from unreel.engine.storage_access import ClipAccessSettings


def say(*words: object) -> None:
    """One line, out at once: whoever reads it kills by it."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(season: str, out: str, stop_at: str = "") -> None:
    step_to_stop, _, number = stop_at.partition(":")
    tally: Counter[str] = Counter()

    def observe(step: str, n_rows: int) -> None:
        tally[step] += 1
        stops = step == step_to_stop and tally[step] == int(number)
        say("stopped" if stops else "step", step, n_rows)
        while stops:
            time.sleep(60)

    recipe = read_season(Path(season))
    job = SeasonJob(
        season=recipe,
        folder=resolve_season_folder(recipe, out),
        access=ClipAccessSettings(settings=read_environment_settings(), trusted=True),
    )
    outcome = run_season(job, JobCallbacks(observe=observe))
    for turn in (*outcome.creators, *outcome.reviewers):
        say("turn", turn.done, sum(turn.failures.values()), turn.title)
        if turn.problem:
            say("problem", turn.title, turn.problem)


if __name__ == "__main__":
    main(*sys.argv[1:])
