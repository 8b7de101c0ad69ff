"""A curation that can be killed: `python driver.py RECIPE OUT [--engine E] [--stop-at EVENT:N]`.

It prints one line for each event of a commit. With `--stop-at` it prints `stopped` at the N-th such event
and stays there until it is killed.
"""

import argparse
import sys
import threading
from pathlib import Path

from unreel.core.settings import read_environment_settings
from unreel.curation.curation_run import CurationRecipeJob, run_curation
from unreel.curation.recipe import read_curation_recipe
from unreel.curation.step_execution import CurationContext
from unreel.engine.committer import CommitPace
from unreel.engine.location import StorageLocation
from unreel.engine.progress import JobCallbacks
from unreel.engine.storage_access import ClipAccessSettings


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Events:
    """Prints each event; at the one that was asked for, says so and stays."""

    def __init__(self, stop_at: str) -> None:
        self._event, _, count = stop_at.partition(":")
        self._left = int(count or 0)
        self._guard = threading.Lock()

    def __call__(self, event: str, _rows: int) -> None:
        with self._guard:
            self._left -= event == self._event
            stop = event == self._event and self._left == 0
            say("stopped" if stop else event)
        if stop:
            threading.Event().wait()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("recipe", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--engine", default="local")
    options.add_argument("--stop-at", default="")
    options.add_argument("--set", action="append", default=[])
    options.add_argument("--trusted", action="store_true")
    given = options.parse_args()
    if given.engine == "ray":
        import ray

        # Two logical CPUs starve Ray's own operators beside our actors.
        ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    bench = CurationContext(
        place=StorageLocation(str(given.out.absolute())),
        access=ClipAccessSettings(settings=read_environment_settings(), trusted=given.trusted),
        ledgers=given.out.absolute() / "ledgers",
        engine=given.engine,
        pace=CommitPace(rows=4, seconds=0.5),
        callbacks=JobCallbacks(observe=Events(given.stop_at)),
    )
    recipe = read_curation_recipe(given.recipe, given.set)
    state = run_curation(
        CurationRecipeJob(
            recipe=recipe, root=given.recipe.absolute().parent, context=bench, accept_leak=True
        )
    )
    say("digest", state.frozen.digest if state.frozen else "")


if __name__ == "__main__":
    main()
