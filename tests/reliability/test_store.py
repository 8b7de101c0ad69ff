"""An S3 server that is killed, restarted, slow, busy, or cuts its replies in the middle of a run."""

import hashlib
import json
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.clips import free_box
from pace import slowness
from reliability.proxy import Fault
from reliability.store import Store
from reliability.trial import Ended, Trial, require_kept, wait_until


def require_whole(trial: Trial, whole: Callable[[], Any], ended: Ended) -> None:
    """The run is over and is what an undisturbed one is."""
    scores, texts = whole()
    assert ended.status == 0, ended.stderr
    assert (ended.scores, trial.texts()) == (scores, texts)
    assert len(trial.rows()) == len(texts)


@pytest.mark.slow
def test_a_run_waits_for_a_store_that_is_killed_and_restarted(
    stored: Trial, store: Store, whole: Callable[[], Any]
) -> None:
    whole()
    started = stored.start_and_stand(3)
    store.kill()
    stored.chat.release()
    try:
        wait_until(lambda: len(stored.chat.asked) >= 16, started)
        time.sleep(1)  # it wants to commit now
        assert started.process.poll() is None
    finally:
        store.start()
    require_whole(stored, whole, started.end())


@pytest.mark.slow
def test_replies_that_are_late_refused_cut_or_lost_cost_no_row(
    stored: Trial, store: Store, whole: Callable[[], Any]
) -> None:
    whole()
    store.proxy.every(4, Fault.BUSY, Fault.SLOW, Fault.HALF, Fault.LOST)
    ended = stored.run()
    assert {Fault.BUSY, Fault.SLOW, Fault.HALF, Fault.LOST} <= set(store.proxy.done)
    store.proxy.sound()
    if ended.status != 0:
        assert ended.status == 2
        assert "Run the same command again" in ended.stderr
        ended = stored.run()
    require_whole(stored, whole, ended)


def test_a_commit_whose_reply_is_lost_is_not_made_twice(
    stored: Trial, store: Store, whole: Callable[[], Any]
) -> None:
    whole()
    started = stored.start_and_ask(3)
    store.proxy.once(Fault.LOST, only="answers.lance/_versions", method="PUT")
    wait_until(lambda: Fault.LOST in store.proxy.done, started)
    stored.chat.release()
    ended = started.end()
    if ended.status != 0:
        assert "Run the same command again" in ended.stderr
        ended = stored.run()
    require_whole(stored, whole, ended)


@pytest.mark.slow
def test_a_second_ctrl_c_ends_a_run_that_cannot_commit(
    stored: Trial, store: Store, whole: Callable[[], Any]
) -> None:
    started = stored.start_and_stand(3)
    before = stored.texts()
    store.proxy.always(Fault.STUCK)
    stored.chat.release()
    wait_until(lambda: len(stored.chat.asked) >= 16, started)
    started.process.send_signal(signal.SIGINT)
    time.sleep(2)
    assert started.process.poll() is None  # it still tries to keep what is finished
    began_s = time.monotonic()
    started.process.send_signal(signal.SIGINT)
    ended = started.end()
    assert ended.status == 128 + signal.SIGINT
    assert time.monotonic() - began_s < 5 * slowness()
    store.proxy.sound()
    require_kept(before, stored.texts())
    require_whole(stored, whole, stored.run())


@pytest.mark.slow
def test_a_store_that_stays_away_ends_the_run_in_words(
    stored: Trial, store: Store, whole: Callable[[], Any]
) -> None:
    started = stored.start_and_stand(3)
    before = stored.texts()
    store.proxy.always(Fault.BUSY)
    stored.chat.release()
    began_s = time.monotonic()
    ended = started.end(within_s=600)
    assert 30 < time.monotonic() - began_s < 400
    assert ended.status == 2
    assert "Run the same command again" in ended.stderr
    assert len(ended.stderr) < 3000
    store.proxy.sound()
    require_kept(before, stored.texts())
    require_whole(stored, whole, stored.run())


def put_clips(store: Store, bench: Path, folder: Path) -> Path:
    """The clips in the bucket, and a manifest of this machine that names them there."""
    place = store.place(f"clips/{folder.name}")
    objects = place.objects()
    header, *lines = bench.read_text().splitlines()
    for line in lines:
        name = line.partition(",")[0]
        objects.put(name, (bench.parent / name).read_bytes())
    manifest = folder / "manifest.csv"
    manifest.write_text("\n".join([header, *(f"{place.uri}/{line}" for line in lines)]) + "\n")
    return manifest


def test_an_object_replaced_under_its_name_is_noticed(
    trial: Trial, store: Store, bench: Path, tmp_path: Path
) -> None:
    manifest = put_clips(store, bench, tmp_path)
    environment = store.environment(tmp_path / "state")
    trial = replace(trial, benchmark=manifest, environment=environment)
    place = store.place(f"clips/{tmp_path.name}")
    started = trial.start_and_ask(3)
    old = (bench.parent / "c00015.mp4").read_bytes()
    place.objects().put("c00015.mp4", old[:-16] + free_box(77))
    trial.chat.release()
    ended = started.end()
    assert ended.status == 1
    (failed,) = [row for row in trial.rows().values() if row["failure_reason"]]
    assert failed["failure_reason"] == "clip-changed"
    assert failed["clip"] == hashlib.sha256(old).hexdigest()

    again = trial.run()
    assert again.status == 0, again.stderr
    assert json.loads(again.stdout)["outcome"]["clips"]["done"] == 1
    assert again.answers["done"] == 1
    assert again.answers["already"] == 15
    assert len(trial.rows("clips")) == 16
    new = hashlib.sha256(old[:-16] + free_box(77)).hexdigest()
    assert new in {row["clip"] for row in trial.rows().values() if row["text"]}


@pytest.mark.slow
def test_clips_are_waited_for_while_their_store_restarts(
    trial: Trial, store: Store, bench: Path, tmp_path: Path, whole: Callable[[], Any]
) -> None:
    scores, texts = whole()
    environment = store.environment(tmp_path / "state")
    manifest = put_clips(store, bench, tmp_path)
    trial = replace(trial, benchmark=manifest, environment=environment)
    started = trial.start_and_ask(3)
    store.kill()
    trial.chat.release()
    time.sleep(5)
    store.start()
    ended = started.end()
    assert ended.status == 0, ended.stderr
    assert sorted(trial.texts().values()) == sorted(texts.values())
    assert ended.scores == scores
