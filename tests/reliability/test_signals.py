"""Ctrl-C, SIGTERM, SIGHUP: what is finished is committed, and the command says how to go on."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reliability.trial import AT_ONCE, Trial, require_kept

WORDS = {
    signal.SIGINT: "stopped by Ctrl-C",
    signal.SIGTERM: "stopped by SIGTERM",
    signal.SIGHUP: "stopped by the end of its terminal",
}
SHORT_LEASE = (
    "import unreel.engine.writer_lock as l; l.build_writer_lock.__kwdefaults__['lease_s'] = 3.0; "
)


def stop_by(trial: Trial, number: signal.Signals) -> None:
    """Stop a run by a signal to it and all its children, as a terminal does, and look."""
    before = trial.texts()
    started = trial.start_and_ask(3, start_new_session=True)
    os.killpg(started.process.pid, number)
    ended = started.end()
    assert ended.status == 128 + number
    assert WORDS[number] in ended.stderr
    assert "Run the same command again: committed results are kept" in ended.stderr
    assert "3 rows of answers of this call are stored in " in ended.stderr
    assert "Go on with `unreel eval" in ended.stderr
    after = trial.texts()
    require_kept(before, after)
    assert len(after) == len(before) + 3  # what was finished is not asked again
    assert len(trial.rows()) == len(after)


def test_a_signal_stops_a_run_in_peace_and_the_next_call_goes_on(
    trial: Trial, whole: Callable[[], Any]
) -> None:
    scores, texts = whole()
    for number in WORDS:
        stop_by(trial, number)
    trial.chat.release()
    again = trial.run()
    assert again.status == 0, again.stderr
    assert (again.scores, trial.texts()) == (scores, texts)
    assert again.answers["already"] == 3 * len(WORDS)
    assert len(trial.chat.asked) <= len(texts) + len(WORDS) * AT_ONCE


@pytest.mark.slow
def test_a_hang_up_that_is_ignored_stays_ignored(trial: Trial, whole: Callable[[], Any]) -> None:
    scores, _ = whole()
    started = trial.start_and_ask(3, command=["nohup", *trial.command])
    started.process.send_signal(signal.SIGHUP)
    trial.chat.release()
    ended = started.end()
    assert ended.status == 0, ended.stderr
    assert ended.scores == scores


@pytest.mark.slow
def test_a_run_that_stood_still_for_a_minute_goes_on(
    trial: Trial, whole: Callable[[], Any]
) -> None:
    scores, texts = whole()
    started = trial.start_and_ask(3)
    started.process.send_signal(signal.SIGSTOP)
    second = replace(trial, folder=trial.folder / "second")
    second.folder.mkdir()
    refused = second.run()
    assert refused.status == 2
    assert "another run writes it" in refused.stderr
    time.sleep(61)
    trial.chat.release()
    started.process.send_signal(signal.SIGCONT)
    ended = started.end()
    assert ended.status == 0, ended.stderr
    assert (ended.scores, trial.texts()) == (scores, texts)


@pytest.mark.slow
def test_who_stood_still_too_long_commits_nothing_more_to_a_store(
    stored: Trial, whole: Callable[[], Any]
) -> None:
    """Stop a run for so long that a second one takes over and ends; then let the first go on."""
    stored = replace(stored, first=SHORT_LEASE)
    scores, texts = whole()
    started = stored.start_and_ask(3)
    started.process.send_signal(signal.SIGSTOP)
    stored.chat.release()
    second = replace(stored, folder=stored.folder / "second")
    second.folder.mkdir()
    ended = second.run()
    assert ended.status == 0, ended.stderr
    version = stored.table("answers").open().version
    started.process.send_signal(signal.SIGCONT)
    late = started.end()
    assert late.status == 2
    assert "which took over while this run did not move" in late.stderr
    assert stored.table("answers").open().version == version
    assert (ended.scores, stored.texts()) == (scores, texts)


@pytest.mark.slow
def test_on_ray_too_a_signal_stops_a_run_in_peace(trial: Trial, whole: Callable[[], Any]) -> None:
    pytest.importorskip("ray", reason="needs the extra ray: pip install 'unreel[ray]'")
    scores, texts = whole()
    on_ray = replace(trial, options=("--engine", "ray"))
    for number in (signal.SIGINT, signal.SIGTERM):
        before = trial.texts()
        started = on_ray.start_and_ask(4)
        started.process.send_signal(number)
        ended = started.end()
        assert ended.status == 128 + number
        assert WORDS[number] in ended.stderr
        require_kept(before, trial.texts())
    trial.chat.release()
    again = trial.run()
    assert again.status == 0, again.stderr
    assert (again.scores, trial.texts()) == (scores, texts)
