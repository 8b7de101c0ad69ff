"""Run the tests against deliberately faulty copies of the package: `python tests/chaos/mutations.py`.

A mutation replaces one piece of text in one file under `src/unreel`, in a temporary copy of the
sources and tests. Its tests must pass in an unchanged copy, which is tried first, and must fail in the
mutated copy. Only tests of the default run are used (`UNREEL_SLOW` is not set). Exits with 0 if every
mutation is caught, 1 if one is missed or its tests cannot run, 2 if the command line is wrong.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src/unreel")
MAX_S = 900
PROBLEMS = frozenset({"failure", "error", "skipped"})
"""Elements of a JUnit report for a test that did not pass."""
NO_TRAINING = "needs the training environment: give its interpreter as --train-python"

COMPACTION = "tests/engine/test_compaction.py::"
DUE_ROWS = "tests/evaluation/test_due_rows.py::"
FULL_DISK = "tests/engine/test_full_disk.py::"
FREEZE = "tests/curation/test_freeze.py::"
JUDGE = "tests/evaluation/test_judge.py::"
KEYS = "tests/engine/test_key_index.py::"
LEDGER = "tests/engine/test_start_log.py::"
LOCAL = "tests/engine/test_runners.py::TestLocalRunner::"
MODELS = "tests/evaluation/test_other_models.py::"
PLACE = "tests/engine/test_location.py::"
RAY = "tests/engine/test_runners.py::TestRayRunner::"
RECORDED = "tests/engine/test_recorded_suspects.py::"
RESTART = "tests/annotation/ledger/test_restart.py::"
RESUMED = "tests/curation/test_freeze_resumed.py::"
SEASON = "tests/arena/test_due_questions.py::"
SPENDING = "tests/evaluation/test_run_cost.py::"
STORED = "tests/engine/test_stored_answers.py::"
SUSPECTS = "tests/engine/test_crash_suspects.py::"
TABLE = "tests/engine/test_table.py::"
TALLY = "tests/arena/test_tally.py::"
TEXTS = "tests/evaluation/test_stored_texts.py::"
TRAINING = "tests/training/test_killed.py::"


@dataclass(frozen=True, slots=True)
class Mutation:
    """Replacement of `old`, which occurs once in `file`, by `new`; one of `tests` must fail."""

    name: str
    file: str
    """Relative to `src/unreel`."""
    old: str
    new: str
    tests: tuple[str, ...]
    needs_torch: bool = False
    """Whether the tests need the training environment."""

    def patched(self, source: str) -> str:
        """Return the mutated source.

        Raises:
            LookupError: The text to replace does not occur exactly once: change the mutation.
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
        "engine/committer.py",
        "lock = self._held.enter_context(build_writer_lock(self._table.place))",
        "lock = build_writer_lock(self._table.place)",
        (TABLE + "test_a_second_committer_of_this_process_is_refused",),
    ),
    Mutation(
        "the kernel's lock is not asked",
        "engine/writer_lock.py",
        "fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "pass",
        (TABLE + "test_a_second_committer_of_another_process_is_refused",),
    ),
    Mutation(
        "the lock is not looked at before a commit",
        "engine/table_writer.py",
        """        self._observe("written", n_rows)
        self._lock.verify()
""",
        """        self._observe("written", n_rows)
""",
        (COMPACTION + "test_what_was_written_when_the_lease_was_lost_is_not_committed",),
    ),
    Mutation(
        "the lease of a holder that moves is taken over",
        "engine/writer_lock.py",
        "if holder.alive is not False:",
        "if False:",
        (PLACE + "test_a_lease_is_refused_while_its_holder_moves",),
    ),
    Mutation(
        "a store without conditional puts is taken",
        "engine/committer.py",
        "        require_conditional_puts(self._table.place)\n",
        "",
        (STORED + "test_a_store_is_checked_before_its_lock_is_taken",),
    ),
    Mutation(
        "a foreign commit is not noticed",
        "engine/table_writer.py",
        "if self._dataset.version != before + 1:",
        "if False:",
        (TABLE + "test_a_foreign_commit_during_a_run_ends_it",),
    ),
    Mutation(
        "what is in the table is asked again",
        "engine/pending_questions.py",
        "        tries[indices] = 0\n",
        "",
        (LOCAL + "test_a_second_run_asks_nothing_and_a_retry_replaces_failures_only",),
    ),
    Mutation(
        "failures are asked again without being told to",
        "engine/pending_questions.py",
        "failed = [reason in self._retry for",
        "failed = [True for",
        (LOCAL + "test_a_second_run_asks_nothing_and_a_retry_replaces_failures_only",),
    ),
    Mutation(
        "a second try is appended",
        "engine/committer.py",
        "(self._again, self._writer.replace)",
        "(self._again, self._writer.add)",
        (TABLE + "test_a_second_try_replaces_the_failure_in_one_commit",),
    ),
    Mutation(
        "doubled keys are not seen",
        "engine/key_index.py",
        "        is_twin[1:] |= same\n        is_twin[:-1] |= same\n",
        "",
        (TABLE + "test_a_doubled_key_is_an_error_that_says_what_to_do_and_can_be_mended",),
    ),
    Mutation(
        "a mark is taken for its key",
        "engine/pending_questions.py",
        "same = (self.stamps[slots] == stamps[indices]).all(axis=1)",
        "same = np.ones(len(slots), dtype=np.bool_)",
        (KEYS + "test_a_key_is_found_exactly_when_all_marks_collide",),
    ),
    Mutation(
        "progress is told before its commit",
        "engine/committer.py",
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
        "engine/table_writer.py",
        """        self._observe("written", n_rows)
        self._lock.verify()
""",
        """        self._observe("committed", n_rows)
        self._observe("written", n_rows)
        self._lock.verify()
""",
        (STORED + "test_a_commit_is_reported_once_readers_see_its_rows",),
    ),
    Mutation(
        "rows that wait at the end are dropped",
        "engine/committer.py",
        """            if self._closing and not self._buffer:
""",
        """            if self._closing:
""",
        (TABLE + "test_what_was_committed_is_read_back",),
    ),
    Mutation(
        "the runner never waits for the committer",
        "engine/committer.py",
        "if not self._has_room():",
        "if False:",
        (LOCAL + "test_a_slow_committer_slows_the_stages",),
    ),
    Mutation(
        "one answer of a commit is changed",
        "engine/committer.py",
        "            return [(rows, schema.batch(rows))]\n",
        '            return [(rows, schema.batch([*rows[:-1], rows[-1] | {"text": "another"}]))]\n',
        (TABLE + "test_every_row_is_stored_as_it_was_given",),
    ),
    Mutation(
        "compaction deletes the version that readers have open",
        "engine/table_writer.py",
        "KEEP_VERSIONS: Final = timedelta(hours=1)",
        "KEEP_VERSIONS: Final = timedelta(0)",
        (TABLE + "test_a_reader_goes_on_with_its_version_after_a_compaction",),
    ),
    Mutation(
        "compaction deletes although the lease is lost",
        "engine/table_writer.py",
        """        self._lock.verify()
        older_than = keep""",
        """        older_than = keep""",
        (COMPACTION + "test_a_compaction_that_outlasts_its_lease_deletes_nothing[compacted]",),
    ),
    Mutation(
        "a row under another key is taken",
        "engine/stage_worker.py",
        """if not isinstance(done, dict) or done.get("key") != row["key"]:""",
        "if not isinstance(done, dict):",
        (LOCAL + "test_rows_failures_and_scratch_columns_are_the_same_on_every_engine",),
    ),
    Mutation(
        "a start is not written",
        "engine/start_log.py",
        "self._write(_BEGIN, item)",
        "self._note(_BEGIN, item)",
        (LEDGER + "test_starts_outlive_kill_9_of_their_writer",),
    ),
    Mutation(
        "on local a row is not recorded as begun",
        "engine/local_runner.py",
        "        self._ledger.begin(item)\n",
        "",
        (RECORDED + "test_a_row_in_flight_is_on_record_until_it_is_finished",),
    ),
    Mutation(
        "on local a finish is not written",
        "engine/local_runner.py",
        "            self._ledger.finish(item)\n",
        "",
        (RECORDED + "test_a_row_in_flight_is_on_record_until_it_is_finished",),
    ),
    Mutation(
        "on local a suspect runs beside the others",
        "engine/local_runner.py",
        "if self._ledger.is_suspect(format_start_log_item(row)):",
        "if False:",
        (RECORDED + "test_a_suspect_runs_alone_and_is_stored",),
    ),
    Mutation(
        "on local a suspect that kills is dropped",
        "engine/local_runner.py",
        "            if row is not None:\n                await self._deliver(row)\n",
        "            if row is outcome:\n                await self._deliver(row)\n",
        (
            RECORDED
            + "test_a_suspect_that_kills_its_process_each_time_is_quarantined_and_the_others_are_stored",
        ),
    ),
    Mutation(
        "a finish does not forgive",
        "engine/start_log.py",
        "            self._records.pop(item, None)\n",
        "            self._records[item].open = False\n",
        (LEDGER + "test_a_finish_forgives_all_deaths",),
    ),
    Mutation(
        "an interrupt is held against what was in flight",
        "engine/local_runner.py",
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
        "engine/stage.py",
        """return f"{row['key']}/{row['attempt']}\"""",
        """return f"{row['key']}/1\"""",
        (LOCAL + "test_a_row_that_is_asked_again_begins_without_deaths",),
    ),
    Mutation(
        "on ray a row counts as begun while it waits",
        "engine/ray_runner.py",
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
        "engine/ray_runner.py",
        "        self._book.finish.remote(items)\n",
        "        pass\n",
        (RAY + "test_what_a_worker_had_not_begun_or_had_finished_does_not_die_with_it",),
    ),
    Mutation(
        "on ray suspects are dropped",
        "engine/ray_runner.py",
        "                            suspects.add(row)\n",
        "                            pass\n",
        (RAY + "test_a_row_that_kills_its_worker_each_time_is_quarantined_and_all_others_finish",),
    ),
    Mutation(
        "on local suspects are dropped",
        "engine/local_runner.py",
        "            self._suspects.add(row)\n",
        "            pass\n",
        ("tests/engine/test_recorded_suspects.py::test_a_suspect_runs_alone_and_is_stored",),
    ),
    Mutation(
        "the first death alone condemns",
        "engine/crash_suspects.py",
        "if trial.deaths >= DEATHS_ALONE:",
        "if trial.deaths >= 1:",
        (SUSPECTS + "test_a_suspect_that_dies_alone_each_time_is_quarantined",),
    ),
    Mutation(
        "the rule is another one than is written down",
        "engine/crash_suspects.py",
        "DEATHS_ALONE: Final = 5",
        "DEATHS_ALONE: Final = 2",
        (SUSPECTS + "test_the_rule_is_the_one_that_is_written_down",),
    ),
    Mutation(
        "a worker that never began counts as a death",
        "engine/crash_suspects.py",
        "if isinstance(outcome, WorkerCrash) and not outcome.began:",
        "if False:",
        (SUSPECTS + "test_a_worker_that_ends_before_it_began_counts_for_nobody",),
    ),
    Mutation(
        "a suspect's process outlives its driver",
        "engine/crash_suspects.py",
        "        connection.wait([driver.sentinel])\n        os._exit(1)\n",
        "        pass\n",
        (SUSPECTS + "test_a_lone_process_does_not_outlive_its_driver",),
    ),
    Mutation(
        "the lock of an eval's driver is not taken",
        "evaluation/run_job.py",
        "with build_writer_lock(run.place / DRIVER), open_shared_runner(engine) as runner:",
        "with open_shared_runner(engine) as runner:",
        (DUE_ROWS + "test_a_second_driver_of_an_eval_is_refused_before_it_writes",),
    ),
    Mutation(
        "the lock of a season's driver is not taken",
        "arena/run/job.py",
        "with build_writer_lock(folder.place / DRIVER):",
        "if True:",
        (SEASON + "test_a_second_driver_of_a_season_is_refused_before_it_writes",),
    ),
    Mutation(
        "the lock of a curation is not taken",
        "curation/segment_table.py",
        "return build_writer_lock(StorageLocation(str(self.folder.root)))",
        "return __import__('contextlib').nullcontext()",
        (FREEZE + "test_a_second_curation_of_the_same_folder_is_refused_while_one_works",),
    ),
    Mutation(
        "the last character of an answer is changed before its commit",
        "engine/committer.py",
        "stored = drop_scratch_columns(row)",
        'stored = drop_scratch_columns(row) | ({"text": row["text"][:-1] + "?"} if row.get("text") else {})',
        (STORED + "test_texts_are_stored_character_by_character",),
    ),
    Mutation(
        "a character in the middle of a long answer is changed before its commit",
        "engine/committer.py",
        "stored = drop_scratch_columns(row)",
        'stored = drop_scratch_columns(row); t = stored.get("text") or ""; m = len(t) // 2\n'
        '            stored |= {"text": t[:m] + "?" + t[m + 1 :]} if m > 1_000 else {}',
        (STORED + "test_texts_are_stored_character_by_character",),
    ),
    Mutation(
        "the end of an answer is stripped before its commit",
        "engine/committer.py",
        "stored = drop_scratch_columns(row)",
        'stored = drop_scratch_columns(row) | ({"text": row["text"].rstrip()} if row.get("text") else {})',
        (STORED + "test_texts_are_stored_character_by_character",),
    ),
    Mutation(
        "an eval stores an answer with one character changed",
        "evaluation/review_stage.py",
        '"text": result.outcome.text,',
        '"text": result.outcome.text[:9] + "?" + result.outcome.text[10:],',
        (TEXTS + "test_an_answer_is_stored_character_by_character",),
    ),
    Mutation(
        "an eval stores a long answer with a character in its middle changed",
        "evaluation/review_stage.py",
        '"text": result.outcome.text,',
        '"text": result.outcome.text[:9_000] + result.outcome.text[9_000:].replace("009", "0?9", 1),',
        (TEXTS + "test_an_answer_is_stored_character_by_character",),
    ),
    Mutation(
        "an eval strips the end of an answer",
        "evaluation/review_stage.py",
        '"text": result.outcome.text,',
        '"text": result.outcome.text.rstrip(),',
        (TEXTS + "test_an_answer_is_stored_character_by_character",),
    ),
    Mutation(
        "a stored answer is scored although it is not the received reply",
        "evaluation/scoring.py",
        'if answer.get("reply_digest") not in (None, digest_reply_text(answer["text"])):',
        "if False:",
        (TEXTS + "test_a_text_that_is_not_the_received_reply_counts_as_failed",),
    ),
    Mutation(
        "another model that answers is not stored",
        "evaluation/review_stage.py",
        '"answered_by": result.outcome.answered_by,',
        '"answered_by": None,',
        (MODELS + "test_another_model_is_stored_with_its_answers_counted_and_shown",),
    ),
    Mutation(
        "a fragment is not committed",
        "engine/table_writer.py",
        "lance.LanceOperation.Append(fragments)",
        "lance.LanceOperation.Append(fragments[1:])",
        (STORED + "test_every_batch_of_a_commit_is_stored",),
    ),
    Mutation(
        "the last of several fragments is not committed",
        "engine/table_writer.py",
        "lance.LanceOperation.Append(fragments)",
        "lance.LanceOperation.Append(fragments[:-1] or fragments)",
        (STORED + "test_every_fragment_of_a_commit_is_stored",),
    ),
    Mutation(
        "the last of several batches is not committed",
        "engine/committer.py",
        "write(draft.batches)",
        "write(draft.batches[:-1] or draft.batches)",
        (STORED + "test_every_portion_of_a_commit_is_stored",),
    ),
    Mutation(
        "the writer drops the last of several batches that it replaces",
        "engine/table_writer.py",
        """        data = pa.Table.from_batches(batches)
        merge =""",
        """        data = pa.Table.from_batches(batches[:-1] or batches)
        merge =""",
        (STORED + "test_every_batch_of_a_commit_is_stored",),
    ),
    Mutation(
        "an eval stores a failed request as the answer 0",
        "evaluation/review_stage.py",
        "return convert_to_failed_row(noted, result.outcome)",
        'return noted | {"text": "<answer>0</answer>"}',
        (TEXTS + "test_a_failed_request_is_stored_with_its_reason_and_without_an_answer",),
    ),
    Mutation(
        "a stage that fails gives a row without a failure",
        "engine/stage.py",
        '        "failure_reason": failure.reason.value,\n        "failure_detail": detail,\n',
        '        "text": "0",\n        "notes": detail,\n',
        (LOCAL + "test_rows_failures_and_scratch_columns_are_the_same_on_every_engine",),
    ),
    Mutation(
        "a failed request to a judge is stored as the score 0",
        "evaluation/judge.py",
        """return convert_to_failed_row(
                    row | build_token_columns(sum_token_usages(usages)), outcome
                )""",
        "return row | build_ruling_columns(JudgeRuling(score=0.0, usage=sum_token_usages(usages)))",
        (
            JUDGE
            + "test_a_failed_request_is_unscored_with_its_cause_and_asked_again_in_the_next_call",
        ),
    ),
    Mutation(
        "a failure is read back from the table as a wrong answer",
        "evaluation/scoring.py",
        'return parse_stored_failure(answer["failure_reason"], answer["failure_detail"])',
        'answer = {**answer, "text": "<answer>0</answer>"}',
        (
            "tests/evaluation/test_run_job.py::test_a_server_that_refuses_everything_leaves_no_accuracy",
        ),
    ),
    Mutation(
        "the annotation ledger doubles a record after a restart",
        "annotation/judgements.py",
        'return digest("record", self.campaign, self.origin, self.raw)',
        'return digest("record", self.campaign, self.origin, self.raw, str(__import__("os").getpid()))',
        (RESTART + "test_records_of_an_earlier_process_are_not_doubled",),
    ),
    Mutation(
        "the arena counts its first cell twice",
        "arena/answers/resampled_counts.py",
        "return counts.reshape(-1, total)",
        "counts[0] *= 2; return counts.reshape(-1, total)",
        (TALLY + "test_every_answer_is_in_one_cell",),
    ),
    Mutation(
        "the arena counts the first answer of each reviewer twice",
        "arena/answers/resampled_counts.py",
        "rows = tuple(order[ends[i] : ends[i + 1]] for i in range(len(play.reviewers)))",
        "rows = tuple(order[[ends[i], *range(ends[i], ends[i + 1])]]"
        " for i in range(len(play.reviewers)))",
        (TALLY + "test_the_counts_of_the_first_resample_are_those_of_the_play",),
    ),
    Mutation(
        "a checkpoint is read as one of a step later",
        "training/checkpoints.py",
        'return TrainingCheckpoint(path=folder, step=int(seal["step"]))',
        'return TrainingCheckpoint(path=folder, step=int(seal["step"]) + 1)',
        ("tests/training/test_checkpoints.py::test_the_newest_sealed_checkpoint_is_read",),
    ),
    Mutation(
        "a training that goes on begins one step late",
        "training/sft/trainer.py",
        "        self.state.save_to_json(str(folder.root / HISTORY))\n",
        "        self.state.global_step += 1\n"
        "        self.state.save_to_json(str(folder.root / HISTORY))\n"
        "        self.state.global_step -= 1\n",
        (TRAINING + "test_killed_while_a_checkpoint_is_written_the_one_before_is_used",),
        needs_torch=True,
    ),
    Mutation(
        "a freeze after a kill copies nothing more",
        "curation/freeze/media.py",
        "    context.put_through(COPY,",
        "    if not target.names():\n        context.put_through(COPY,",
        (RESUMED + "test_files_that_are_missing_after_a_kill_are_copied",),
    ),
    Mutation(
        "a freeze after a kill skips files that sort before the last copied one",
        "curation/freeze/media.py",
        'if self._target.size(name) == row["size_bytes"]:',
        'if name < max(self._target.names(), default=""):',
        (RESUMED + "test_files_that_are_missing_after_a_kill_are_copied",),
    ),
    Mutation(
        "a freeze accepts a file of another size",
        "curation/freeze/media.py",
        'if self._target.size(name) == row["size_bytes"]:',
        "if self._target.size(name) is not None:",
        (RESUMED + "test_a_file_of_another_size_is_copied_again",),
    ),
    Mutation(
        "a failure is never due for the engine",
        "engine/pending_questions.py",
        "failed = [reason in self._retry for",
        "failed = [False for",
        (KEYS + "test_a_run_asks_what_is_missing_and_failures_only_on_demand",),
    ),
    Mutation(
        "every failure is due for the counting of an eval",
        "engine/pending_questions.py",
        "failed = [reason in self._retry for",
        "failed = [True for",
        (DUE_ROWS + "test_a_failed_row_is_due_only_for_a_reason_that_is_retried",),
    ),
    Mutation(
        "a failure counts as answered in a season",
        "arena/run/question_plan.py",
        "PendingQuestionFilter(run.answers, NEVER_PUT.union(retry))",
        "PendingQuestionFilter(run.answers)",
        (SEASON + "test_failures_are_due_again_only_for_the_reasons_that_are_retried",),
    ),
    Mutation(
        "a cap on cost forgets what earlier calls spent",
        "evaluation/run_cost.py",
        "    return factory.after(before)\n",
        "    return factory\n",
        (SPENDING + "test_a_cap_counts_what_earlier_calls_spent",),
    ),
    Mutation(
        "nothing is reserved before a request",
        "reviewers/endpoint/budget.py",
        "            planned_usd = max(self._price.cost_usd(most), self._dearest_usd)\n",
        "            planned_usd = Decimal(0)\n",
        (SPENDING + "test_the_first_wave_is_capped",),
    ),
    Mutation(
        "a reply without usage costs nothing",
        "reviewers/endpoint/client.py",
        "        if is_counted or refused or not self._has_price:\n",
        "        if True:\n",
        (SPENDING + "test_a_server_that_reports_no_usage_stops_at_the_cap",),
    ),
    Mutation(
        "a paid failure loses its tokens",
        "reviewers/endpoint/client.py",
        "self._redact(outcome.detail), course.usage)",
        "self._redact(outcome.detail))",
        (SPENDING + "test_a_paid_failure_keeps_its_tokens_and_cost",),
    ),
    Mutation(
        "asking goes on although the disk is full",
        "engine/local_runner.py",
        "                self._sink.require_ready()\n",
        "                pass\n",
        (FULL_DISK + "test_nothing_is_asked_that_the_disk_has_no_room_for",),
    ),
    Mutation(
        "refusals for a rate limit use up the retries",
        "reviewers/endpoint/client.py",
        "while not throttled and not self._retries",
        "while not self._retries",
        ("tests/reviewers/test_rate_limits.py::test_a_rate_limit_costs_time_and_no_question",),
    ),
)


@dataclass(frozen=True, slots=True)
class MutationResult:
    """Result of the tests of one mutation."""

    name: str
    file: str
    tests: tuple[str, ...]
    result: Literal["caught", "MISSED", "cannot run"]
    seconds: float
    detail: str = ""


@contextmanager
def copy_of_sources() -> Iterator[Path]:
    """Yield a copy of the package and its tests; it is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="unreel-mutant-") as folder:
        copy = Path(folder) / "main"
        for part in ("src", "tests"):
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, copy / part, ignore=skipped)
        shutil.copy(ROOT / "pyproject.toml", copy)
        yield copy


def run_tests(
    copy: Path, tests: Sequence[str], *options: str, python: str
) -> subprocess.CompletedProcess[str]:
    """Run the tests of the copy against the package of the copy."""
    command = [python, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *options, *tests]
    programs = [str(Path(python).parent), os.environ["PATH"]]  # noqa: TID251  servers of the tests
    environment = os.environ | {  # noqa: TID251  handed on to a child
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": str(copy / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "UNREEL_SLOW": "0",
    }
    return subprocess.run(
        command,
        check=False,
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=MAX_S,
    )


def try_mutation(mutation: Mutation, *, python: str = sys.executable) -> MutationResult:
    """Run the tests of a mutation in a mutated copy."""
    started_s = time.monotonic()
    with copy_of_sources() as copy:
        target = copy / PACKAGE / mutation.file
        target.write_text(mutation.patched(target.read_text()))
        done = run_tests(copy, mutation.tests, "-x", python=python)
    seconds = time.monotonic() - started_s
    match done.returncode:
        case 0:
            return as_result(mutation, "MISSED", seconds)
        case 1:
            return as_result(mutation, "caught", seconds)
        case _:
            return as_result(mutation, "cannot run", seconds, done.stdout + done.stderr)


def as_result(
    mutation: Mutation,
    result: Literal["caught", "MISSED", "cannot run"],
    seconds: float = 0.0,
    detail: str = "",
) -> MutationResult:
    return MutationResult(
        mutation.name, mutation.file, mutation.tests, result, round(seconds, 1), detail
    )


def find_unusable_tests(tests: Sequence[str], *, python: str) -> dict[str, str]:
    """Run the tests in an unchanged copy; return those that do not pass, with the reason."""
    with copy_of_sources() as copy:
        report = copy / "report.xml"
        done = run_tests(copy, tests, f"--junitxml={report}", python=python)
        if not report.exists():
            return dict.fromkeys(tests, done.stdout + done.stderr)
        cases = list(ET.parse(report).iter("testcase"))
    output = done.stdout + done.stderr
    return {test: why for test in tests if (why := find_problem(test, cases, output))}


def find_problem(test: str, cases: Sequence[ET.Element], output: str) -> str:
    """Return why a test did not pass according to the report of pytest; empty if it passed."""
    path, *classes, name = test.split("::")
    module = ".".join([path.removesuffix(".py").replace("/", "."), *classes])
    found = [
        case
        for case in cases
        if case.get("classname") == module
        and name in (case.get("name", ""), case.get("name", "").partition("[")[0])
    ]
    if not found:
        return f"did not run in an unchanged copy: {output}"
    problems = [part for case in found for part in case if part.tag in PROBLEMS]
    return "; ".join(f"{part.tag}: {part.get('message', '')}" for part in problems)


def try_all(
    mutations: Sequence[Mutation], *, jobs: int, train_python: str | None
) -> Iterator[MutationResult]:
    """Yield the result of each mutation, in order, after its tests passed in an unchanged copy."""
    usable = [each for each in mutations if not each.needs_torch or train_python is not None]
    pythons = {True: train_python or sys.executable, False: sys.executable}
    problems: dict[str, str] = {}
    for needs_torch, python in pythons.items():
        chosen = [each.tests for each in usable if each.needs_torch == needs_torch]
        tests = list(dict.fromkeys(test for group in chosen for test in group))
        if tests:
            problems |= find_unusable_tests(tests, python=python)

    def judge(mutation: Mutation) -> MutationResult:
        if mutation not in usable:
            return as_result(mutation, "cannot run", detail=NO_TRAINING)
        found = [problems[test] for test in mutation.tests if test in problems]
        if found:
            return as_result(mutation, "cannot run", detail=found[0])
        return try_mutation(mutation, python=pythons[mutation.needs_torch])

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(judge, mutations)


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", choices=[mutation.name for mutation in MUTATIONS])
    options.add_argument("--jobs", type=int, default=2, help="mutations at a time (default 2)")
    options.add_argument("--train-python", help="interpreter of the training environment")
    options.add_argument("--json", action="store_true", help="print one JSON document")
    given = options.parse_args(arguments)
    if given.jobs < 1:
        options.error("--jobs must be at least 1")
    chosen = [mutation for mutation in MUTATIONS if given.only in (None, mutation.name)]
    results = []
    for result in try_all(chosen, jobs=given.jobs, train_python=given.train_python):
        results.append(result)
        if not given.json:
            last = result.detail.strip().splitlines()[-1:]
            why = f" ({last[0]})" if last else ""
            print(f"{result.result:10} {result.seconds:6.1f} s  {result.name}{why}", flush=True)
    n_caught = sum(result.result == "caught" for result in results)
    if given.json:
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        print(f"{n_caught} of {len(chosen)} caught")
    excused = sum(result.detail == NO_TRAINING for result in results)
    return 0 if n_caught + excused == len(chosen) else 1


if __name__ == "__main__":
    raise SystemExit(main())
