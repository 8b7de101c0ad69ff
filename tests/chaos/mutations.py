"""Faults put into the engine on purpose, each with the tests that must notice: `python mutations.py`.

`--only NAME` tries one. A mutation is a patch of one file under `src/unreel/engine`, made in a temporary
copy of the sources and tests, never in place. First the tests of all chosen mutations must pass
in an unchanged copy; then each must fail under its mutation. Exits with 1 when one is missed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINE = Path("src/unreel/engine")
MOST_S = 900
FAILED = 1
"""What pytest returns when tests ran and some did not pass; else it could not run them."""

CHAOS = "tests/chaos/test_chaos.py::"
COMPACTION = "tests/engine/test_compaction.py::"
KEYS = "tests/engine/test_keys.py::"
LEDGER = "tests/engine/test_start_log.py::"
LOCAL = "tests/engine/test_runners.py::TestLocalRunner::"
PLACE = "tests/engine/test_place.py::"
RAY = "tests/engine/test_runners.py::TestRayRunner::"
SUSPECTS = "tests/engine/test_suspects.py::"
TABLE = "tests/engine/test_table.py::"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fault: `old` stands once in `file` and becomes `new`; one of `tests` must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def patched(self, source: str) -> str:
        """The source with the fault in it.

        Raises:
            LookupError: The text to replace is not there once: the mutation needs mending.
        """
        if source.count(self.old) != 1:
            msg = (
                f"{self.name}: {self.file} holds its text {source.count(self.old)} times, not once"
            )
            raise LookupError(msg)
        return source.replace(self.old, self.new)


MUTATIONS = (
    Mutation(
        "the writer's lock is not taken",
        "committer.py",
        "lock = self._held.enter_context(writer_lock(self._table.place))",
        "lock = writer_lock(self._table.place)",
        (CHAOS + "test_a_second_driver_of_a_run_is_refused_before_it_asks_anything",),
    ),
    Mutation(
        "the kernel's lock is not asked",
        "lock.py",
        "fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        (TABLE + "test_a_second_committer_of_another_process_is_refused",),
    ),
    Mutation(
        "the lock is not looked at before a commit",
        "table_writer.py",
        """        self._observe("written", n_rows)
        self._lock.verify()
""",
        """        self._observe("written", n_rows)
""",
        (COMPACTION + "test_what_was_written_when_the_lease_was_lost_is_not_committed",),
    ),
    Mutation(
        "the lease of a holder that moves is taken over",
        "lock.py",
        "if holder.alive is not False:",
        "if False:",
        (PLACE + "test_a_lease_is_refused_while_its_holder_moves",),
    ),
    Mutation(
        "a store without conditional puts is taken",
        "committer.py",
        "        require_conditional_puts(self._table.place)\n",
        "",
        (PLACE + "test_a_store_that_ignores_conditions_is_refused_before_anything_is_asked",),
    ),
    Mutation(
        "a foreign commit is not noticed",
        "table_writer.py",
        "if self._dataset.version != before + 1:",
        "if False:",
        (TABLE + "test_a_foreign_commit_during_a_run_ends_it",),
    ),
    Mutation(
        "what is in the table is asked again",
        "due.py",
        "        tries[places] = 0\n",
        "",
        (LOCAL + "test_a_second_run_asks_nothing_and_a_retry_replaces_failures_only",),
    ),
    Mutation(
        "failures are asked again without being told to",
        "due.py",
        "failed = [reason in self._retry for",
        "failed = [True for",
        (KEYS + "test_what_is_due_is_what_a_set_of_all_keys_would_tell",),
    ),
    Mutation(
        "a second try is appended",
        "committer.py",
        "(self._again, self._writer.replace)",
        "(self._again, self._writer.add)",
        (TABLE + "test_a_second_try_replaces_the_failure_in_one_commit",),
    ),
    Mutation(
        "doubled keys are not seen",
        "keys.py",
        "        is_twin[1:] |= same\n        is_twin[:-1] |= same\n",
        "",
        (TABLE + "test_a_doubled_key_is_an_error_that_says_what_to_do_and_can_be_mended",),
    ),
    Mutation(
        "a mark is taken for its key",
        "due.py",
        "same = (self.stamps[slots] == stamps[places]).all(axis=1)",
        "same = np.ones(len(slots), dtype=np.bool_)",
        (KEYS + "test_a_key_is_found_exactly_when_all_marks_collide",),
    ),
    Mutation(
        "progress is told before its commit",
        "committer.py",
        """                write(draft.batches)
                self._report(draft)
""",
        """                self._report(draft)
                write(draft.batches)
""",
        (TABLE + "test_progress_is_told_once_readers_can_see_it",),
    ),
    Mutation(
        "committed is said before the commit",
        "table_writer.py",
        """        self._observe("written", n_rows)
        self._lock.verify()
""",
        """        self._observe("committed", n_rows)
        self._observe("written", n_rows)
        self._lock.verify()
""",
        (CHAOS + "test_driver_kills_lose_nothing_and_double_nothing",),
    ),
    Mutation(
        "rows that wait at the end are dropped",
        "committer.py",
        """            if self._closing and not self._buffer:
""",
        """            if self._closing:
""",
        (TABLE + "test_what_was_committed_is_read_back",),
    ),
    Mutation(
        "the runner never waits for the committer",
        "committer.py",
        "if not self._has_room():",
        "if False:",
        (LOCAL + "test_a_slow_committer_slows_the_stages",),
    ),
    Mutation(
        "one answer of a commit is changed",
        "committer.py",
        "            return [(rows, schema.batch(rows))]\n",
        '            return [(rows, schema.batch([*rows[:-1], rows[-1] | {"text": "another"}]))]\n',
        (CHAOS + "test_driver_kills_lose_nothing_and_double_nothing",),
    ),
    Mutation(
        "compaction deletes the version that readers have open",
        "table_writer.py",
        "KEEP_VERSIONS: Final = timedelta(hours=1)",
        "KEEP_VERSIONS: Final = timedelta(0)",
        (TABLE + "test_a_reader_goes_on_with_its_version_after_a_compaction",),
    ),
    Mutation(
        "compaction deletes although the lease is lost",
        "table_writer.py",
        """        self._lock.verify()
        older_than = keep""",
        """        older_than = keep""",
        (COMPACTION + "test_a_compaction_that_outlasts_its_lease_deletes_nothing[compacted]",),
    ),
    Mutation(
        "a row under another key is taken",
        "worker.py",
        """if not isinstance(done, dict) or done.get("key") != row["key"]:""",
        "if not isinstance(done, dict):",
        (LOCAL + "test_rows_failures_and_scratch_columns_are_the_same_on_every_engine",),
    ),
    Mutation(
        "a start is not written",
        "start_log.py",
        "self._write(_BEGIN, item)",
        "self._note(_BEGIN, item)",
        (LEDGER + "test_starts_outlive_kill_9_of_their_writer",),
    ),
    Mutation(
        "a finish does not forgive",
        "start_log.py",
        "            self._records.pop(item, None)\n",
        "            self._records[item].open = False\n",
        (LEDGER + "test_a_finish_forgives_all_deaths",),
    ),
    Mutation(
        "an interrupt is held against what was in flight",
        "local.py",
        """                thread.join()
                book.withdraw()
                raise
""",
        """                thread.join()
                raise
""",
        (LOCAL + "test_ctrl_c_keeps_what_is_finished_and_blames_nobody",),
    ),
    Mutation(
        "a second try inherits the deaths of the first",
        "runner.py",
        """return f"{row['key']}/{row['attempt']}\"""",
        """return f"{row['key']}/1\"""",
        (LOCAL + "test_a_row_that_is_asked_again_begins_without_deaths",),
    ),
    Mutation(
        "on ray a row counts as begun while it waits",
        "ray_data.py",
        """        await self._worker.enter()
        try:
            await self._pen.begin(item)
""",
        """        await self._pen.begin(item)
        await self._worker.enter()
        try:
""",
        (RAY + "test_what_a_worker_had_not_begun_or_had_finished_does_not_die_with_it",),
    ),
    Mutation(
        "on ray a finish is not written",
        "ray_data.py",
        "        self._book.finish.remote(items)\n",
        "        pass\n",
        (RAY + "test_what_a_worker_had_not_begun_or_had_finished_does_not_die_with_it",),
    ),
    Mutation(
        "on ray suspects are dropped",
        "ray_data.py",
        "                            suspects.add(row)\n",
        "                            pass\n",
        (CHAOS + "test_kills_aimed_at_suspects_condemn_the_guilty_and_nobody_else[ray]",),
    ),
    Mutation(
        "on local suspects are dropped",
        "local.py",
        "            self._suspects.add(row)\n",
        "            pass\n",
        (CHAOS + "test_kills_aimed_at_suspects_condemn_the_guilty_and_nobody_else[local]",),
    ),
    Mutation(
        "the first death alone condemns",
        "suspects.py",
        "if trial.deaths >= DEATHS_ALONE:",
        "if trial.deaths >= 1:",
        (CHAOS + "test_kills_aimed_at_suspects_condemn_the_guilty_and_nobody_else[local]",),
    ),
    Mutation(
        "the rule is another one than is written down",
        "suspects.py",
        "DEATHS_ALONE: Final = 5",
        "DEATHS_ALONE: Final = 2",
        (SUSPECTS + "test_the_rule_is_the_one_that_is_written_down",),
    ),
    Mutation(
        "a worker that never began counts as a death",
        "suspects.py",
        "if isinstance(outcome, Died) and not outcome.began:",
        "if False:",
        (SUSPECTS + "test_a_worker_that_ends_before_it_began_counts_for_nobody",),
    ),
    Mutation(
        "a suspect's process outlives its driver",
        "lone.py",
        "        connection.wait([driver.sentinel])\n        os._exit(1)\n",
        "        pass\n",
        (SUSPECTS + "test_a_lone_process_does_not_outlive_its_driver",),
    ),
)


@contextmanager
def copy_of_sources() -> Iterator[Path]:
    """A copy of the package and its tests, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="unreel-mutant-") as folder:
        copy = Path(folder) / "main"
        for part in ("src", "tests"):
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, copy / part, ignore=skipped)
        shutil.copy(ROOT / "pyproject.toml", copy)
        yield copy


def run_tests(copy: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run the copy's tests against the copy's package."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    paths = {
        "PYTHONPATH": str(copy / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "UNREEL_SLOW": "1",
    }
    return subprocess.run(
        command,
        check=False,
        cwd=copy,
        env=os.environ | paths,  # noqa: TID251  the tests' own environment, and the copy before it
        capture_output=True,
        text=True,
        timeout=MOST_S,
    )


def is_noticed(mutation: Mutation) -> bool:
    """Whether the tests fail under the mutation."""
    with copy_of_sources() as copy:
        target = copy / ENGINE / mutation.file
        target.write_text(mutation.patched(target.read_text()))
        ran = run_tests(copy, mutation.tests)
    if ran.returncode not in (0, FAILED):
        raise RuntimeError(ran.stdout + ran.stderr)
    return ran.returncode == FAILED


def require_calm(mutations: Sequence[Mutation]) -> None:
    """Refuse to begin when the tests do not all pass, and run, without any mutation."""
    tests = list(dict.fromkeys(test for mutation in mutations for test in mutation.tests))
    with copy_of_sources() as copy:
        ran = run_tests(copy, tests)
    last = ran.stdout.strip().splitlines()[-1]
    if ran.returncode != 0 or "skipped" in last:
        raise RuntimeError(ran.stdout + ran.stderr)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", choices=[mutation.name for mutation in MUTATIONS])
    given = options.parse_args()
    chosen = [mutation for mutation in MUTATIONS if given.only in (None, mutation.name)]
    require_calm(chosen)
    missed = 0
    print("| fault | noticed | by | seconds |\n|---|---|---|---|")
    for mutation in chosen:
        began_s = time.monotonic()
        noticed = is_noticed(mutation)
        missed += not noticed
        test = ", ".join(test.rpartition("::")[2] for test in mutation.tests)
        seconds = round(time.monotonic() - began_s)
        word = "yes" if noticed else "MISSED"
        print(f"| {mutation.name} | {word} | `{test}` | {seconds} |", flush=True)
    print(f"\n{len(chosen) - missed} of {len(chosen)} noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
