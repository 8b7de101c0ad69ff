"""Clips that are empty, missing or replaced: failures with a reason, never an answer about other bytes."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.clips import free_box
from reliability.trial import Trial, require_kept
from unreel.core.content_ids import compute_clip_id


@pytest.fixture
def mine(bench: Path, tmp_path: Path) -> Path:
    """A copy of the clips that a test may change."""
    return Path(shutil.copytree(bench.parent, tmp_path / "mine")) / bench.name


def test_an_empty_clip_is_a_failure_and_the_others_are_answered(trial: Trial, mine: Path) -> None:
    (mine.parent / "c00003.mp4").write_bytes(b"")
    ended = replace(trial, benchmark=mine).run()
    assert ended.status == 1
    told = json.loads(ended.stdout)["outcome"]
    assert sum(told["unreadable"].values()) == 1
    assert told["answers"]["done"] == 15
    (row,) = [row for row in trial.rows("clips").values() if row["failure_reason"]]
    assert row["location"].endswith("c00003.mp4")
    assert row["failure_detail"]


def test_a_clip_replaced_during_a_run_is_never_answered_for_the_old_one(
    trial: Trial, mine: Path, whole: Callable[[], Any]
) -> None:
    _, texts = whole()
    trial = replace(trial, benchmark=mine)
    started = trial.start_and_stand(3)
    before = trial.texts()
    last = mine.parent / "c00015.mp4"
    old = compute_clip_id(last)
    stamp = last.stat()
    last.write_bytes(last.read_bytes()[:-16] + free_box(99))  # the same size
    os.utime(last, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # and the same time
    trial.chat.release()
    ended = started.end()
    assert ended.status == 1
    (failed,) = [row for row in trial.rows().values() if row["failure_reason"]]
    assert (failed["failure_reason"], failed["clip"]) == ("clip-changed", old)
    require_kept(before, trial.texts())
    assert len(trial.texts()) == len(texts) - 1

    last.touch()
    again = trial.run()
    assert again.status == 0, again.stderr
    assert compute_clip_id(last) in {row["clip"] for row in trial.rows().values() if row["text"]}
    require_kept(before, trial.texts())


def test_a_thousand_missing_clips_are_failures_told_in_one_line(
    trial: Trial, mine: Path, tmp_path: Path
) -> None:
    lines = mine.read_text().splitlines()
    gone = [f"gone{number}.mp4,real,,g{number}" for number in range(1000)]
    mine.write_text("\n".join([*lines, *gone]) + "\n")
    trial = replace(trial, benchmark=mine)
    command = [word for word in trial.command if word != "--json"]
    ended = trial.run(command=command)
    assert ended.status == 1
    assert "failed: 1000 not-a-file" in ended.stderr
    assert len(ended.stderr.splitlines()) < 30
    missing = [row for row in trial.rows("clips").values() if row["failure_reason"]]
    assert {row["failure_reason"] for row in missing} == {"not-a-file"}
    assert len(missing) == 1000
    assert len(trial.texts()) == 16
