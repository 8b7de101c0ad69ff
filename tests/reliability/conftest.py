"""Clips, a server and an undisturbed run to compare with."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lance", reason="needs the extra eval: pip install 'unreel[eval]'")

from chaos.clips import make_clips
from reliability.disk import disk
from reliability.store import Store, faulty_store
from reliability.trial import Chat, Trial, chat_server
from unreel.engine.location import StorageLocation

__all__ = ["disk"]  # a fixture that lives in a file of its own

N_CLIPS = 16


@pytest.fixture(scope="session")
def chat_of_session() -> Iterator[Chat]:
    with chat_server() as chat:
        yield chat


@pytest.fixture
def chat(chat_of_session: Chat) -> Iterator[Chat]:
    """The server, with nothing asked and everything let."""
    chat_of_session.asked.clear()
    chat_of_session.release()
    yield chat_of_session
    chat_of_session.release()


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of a few clips."""
    return make_clips(tmp_path_factory.mktemp("bench"), N_CLIPS)


@pytest.fixture
def trial(bench: Path, chat: Chat, tmp_path: Path) -> Iterator[Trial]:
    """A run in a folder."""
    place = StorageLocation(str(tmp_path / "run"))
    trial = Trial(benchmark=bench, place=place, chat=chat, folder=tmp_path, begun=[])
    yield trial
    for process in trial.begun:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def whole(
    bench: Path, chat_of_session: Chat, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Any]:
    """The scores and answers of a run that nothing disturbs, made once."""
    folder = tmp_path_factory.mktemp("whole")
    place = StorageLocation(str(folder / "run"))
    trial = Trial(benchmark=bench, place=place, chat=chat_of_session, folder=folder, begun=[])
    kept: list[Any] = []

    def made() -> Any:
        if not kept:
            chat_of_session.release()
            ended = trial.run()
            assert ended.status == 0, ended.stderr
            kept.append((ended.scores, trial.texts()))
            chat_of_session.asked.clear()
        return kept[0]

    return made


@pytest.fixture(scope="session")
def store_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with faulty_store(tmp_path_factory.mktemp("weed")) as store:
        yield store


@pytest.fixture
def store(store_of_session: Store) -> Iterator[Store]:
    """The server, up, behind a proxy that does nothing to it."""
    store_of_session.proxy.sound()
    store_of_session.proxy.done.clear()
    yield store_of_session
    store_of_session.proxy.sound()


@pytest.fixture
def stored(trial: Trial, store: Store, tmp_path: Path) -> Trial:
    """A run in a store; who opens its clips makes no difference there, and here it starts sooner."""
    environment = store.environment(tmp_path / "state")
    place = store.place(f"runs/{tmp_path.name}")
    return replace(trial, place=place, environment=environment, options=("--trusted",))
