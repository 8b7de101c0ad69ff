"""Disk full, read-only folder, too many open files: said in words, nothing lost, nothing doubled."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reliability.disk import fill, mount
from reliability.trial import Trial, require_kept
from unreel.engine.location import StorageLocation


def test_a_full_disk_ends_the_run_in_words_and_room_lets_it_go_on(
    trial: Trial, disk: Path, whole: Callable[[], Any]
) -> None:
    scores, texts = whole()
    trial = replace(trial, place=StorageLocation(str(disk / "run")))
    started = trial.start_and_stand()
    before = trial.texts()
    ballast = fill(disk)
    trial.chat.release()
    ended = started.end()
    assert ended.status == 2
    assert "No space left on device" in ended.stderr
    assert "Make room" in ended.stderr
    require_kept(before, trial.texts())

    still = trial.run()
    assert still.status == 2
    assert "Make room" in still.stderr
    require_kept(before, trial.texts())

    ballast.unlink()
    again = trial.run()
    assert again.status == 0, again.stderr
    assert (again.scores, trial.texts()) == (scores, texts)


@pytest.mark.slow
def test_a_folder_that_turns_read_only_ends_the_run_in_words(
    trial: Trial, disk: Path, whole: Callable[[], Any]
) -> None:
    scores, texts = whole()
    assert mount("-o", "remount,size=64m", str(disk))
    trial = replace(trial, place=StorageLocation(str(disk / "run")))
    assert mount("-o", "remount,ro", str(disk))
    first = trial.run()
    assert first.status == 2
    assert "Read-only file system" in first.stderr
    assert "name another place" in first.stderr
    assert trial.chat.asked == []
    assert mount("-o", "remount,rw", str(disk))
    started = trial.start_and_stand()
    before = trial.texts()
    # A disk with files open for writing does not turn read-only on request: a mount over it does.
    assert mount("--bind", trial.place.uri, trial.place.uri)
    try:
        assert mount("-o", "remount,bind,ro", trial.place.uri)
        trial.chat.release()
        ended = started.end()
    finally:
        subprocess.run(["umount", "-l", trial.place.uri], check=True)
    assert ended.status == 2
    assert "Read-only file system" in ended.stderr
    assert "Make it writable" in ended.stderr
    require_kept(before, trial.texts())
    again = trial.run()
    assert again.status == 0, again.stderr
    assert (again.scores, trial.texts()) == (scores, texts)


@pytest.mark.slow
def test_too_few_open_files_end_the_run_in_words(trial: Trial, whole: Callable[[], Any]) -> None:
    scores, texts = whole()
    ended = trial.run(command=["prlimit", "--nofile=24:24", *trial.command])
    assert ended.status == 2
    assert "Too many open files" in ended.stderr
    assert "ulimit -n" in ended.stderr
    again = trial.run()
    assert again.status == 0, again.stderr
    assert (again.scores, trial.texts()) == (scores, texts)
