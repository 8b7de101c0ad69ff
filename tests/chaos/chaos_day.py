"""Chaos day: every service with work, faults for some minutes, then a count of each invariant.

    python tests/chaos/chaos_day.py --minutes 20 --seed 1 [--label-studio PROGRAM] [--ray]

It starts PostgreSQL, SeaweedFS, the reward service, the desk and Label Studio with the commands and health checks of
compose.yaml, evaluates on a small disk, in a bucket and on Ray, and kills, stops, cuts, fills and sets clocks meanwhile.
The log of faults goes to stderr, the result as JSON to stdout. Status 1: an invariant was broken. It needs root (for a
small disk), and the packages faketime, postgresql and curl.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from chaos.clips import make_clips
from chaos.day.campaign import CampaignLoad
from chaos.day.evals import EvalLoad
from chaos.day.faults import (
    ChaosFault,
    FaultSchedule,
    LoadRecord,
    cut,
    fill_disk,
    kill,
    restart,
    set_clock,
    stop,
)
from chaos.day.requests import USER_HEADER, DeskLoad, RewardLoad
from chaos.day.services import Service, build_service, read_health_check
from postgres import running as running_postgres
from reliability.disk import small_disk
from reliability.proxy import Proxy, faulty_proxy
from reliability.store import faulty_store
from reliability.test_clock import SLEEP, build_clock_environment
from reliability.trial import Chat, Trial, chat_server
from scripted import ANSWERS
from studio import free_port
from synthesise import ClipRecipe, synthesise
from unreel.annotation.studio.client import CLIPS
from unreel.engine.location import StorageLocation

N_CLIPS = 120
DRAIN_S = 600.0
"""Time for all work to end once the faults are over."""
N_PICTURES = 4
TOKEN = "chaos"
MODEL = "vllm/qwen3-vl"


@dataclass
class ChaosDay:
    """Services, work and possible faults of one day, in one folder."""

    folder: Path
    held: ExitStack
    is_over: threading.Event = field(default_factory=threading.Event)
    faults: list[ChaosFault] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    loads: list[Any] = field(default_factory=list)
    ready_s: dict[str, float] = field(default_factory=dict)

    def open_chat(self, target: str, **settings: Any) -> tuple[Chat, Chat]:
        """Start a model server; return it, and the same behind a proxy that faults can cut."""
        chat = self.held.enter_context(chat_server())
        for name, value in settings.items():
            setattr(chat, name, value)
        proxy = self.open_proxy(f"model of {target}", chat.port)
        return chat, replace(chat, port=proxy.port)

    def open_proxy(self, target: str, port: int) -> Proxy:
        proxy = self.held.enter_context(faulty_proxy(port))
        self.faults.append(cut(target, proxy))
        return proxy

    def add_clock(self, target: str) -> dict[str, str]:
        """Return an environment whose clock faults can set."""
        file = self.folder / f"clock of {target}".replace(" ", "-")
        environment = build_clock_environment(file)
        self.faults.append(set_clock(target, file))
        return environment

    def add_service(self, service: Service) -> Service:
        """Start a service, wait for its health check, and let faults kill and stop it."""
        began_s = time.monotonic()
        service.start()
        self.held.callback(service.end)
        service.wait_ready()
        self.ready_s[service.name] = round(time.monotonic() - began_s, 1)
        self.services.append(service)
        self.faults.append(kill(service.name, service.find_pid, service.wait_ready))
        self.faults.append(stop(service.name, service.find_pid))
        return service


def add_postgres(day: ChaosDay) -> Any:
    """Start PostgreSQL with the health check of compose.yaml."""
    server = day.held.enter_context(running_postgres())
    server.create_database("unreel")
    began_s = time.monotonic()
    health = read_health_check("postgres", server.port)
    check = Service("postgres", [], health, day.folder)
    check.wait_ready()
    day.ready_s["postgres"] = round(time.monotonic() - began_s, 1)

    day.faults.append(restart("postgres", server.kill, server.start))
    day.faults.append(stop("postgres", lambda: server.pid))
    return server


@dataclass
class EvalBench:
    """Clips of all evaluations, and the scores and answers of an undisturbed run."""

    day: ChaosDay
    manifest: Path
    truth: Any = None

    def add(self, name: str, place: Callable[[int], StorageLocation], **settings: Any) -> None:
        """Add evaluations named `name`; `place` is the location of a run by its number."""
        chat, cut_chat = self.day.open_chat(name)
        folder = _make(self.day.folder / name.replace(" ", "-"))
        whole = StorageLocation(str(folder / "whole"))
        trial = Trial(benchmark=self.manifest, place=whole, chat=chat, folder=folder, begun=[])
        if self.truth is None:
            ended = trial.start().end(within_s=DRAIN_S)
            assert ended.status == 0, ended.stderr
            self.truth = ended.scores, trial.texts()
        chat.delay_s = 0.25
        trial = replace(trial, chat=cut_chat, **settings)
        load = EvalLoad(LoadRecord(name), trial, place, self.truth, self.day.is_over)
        self.day.loads.append(load)
        self.day.faults += [kill(name, load.find_pid), stop(name, load.find_pid)]


def add_evals(day: ChaosDay, *, with_ray: bool) -> None:
    """Evaluate on a small disk and in a bucket, and on Ray if wished."""
    bench = EvalBench(day, make_clips(_make(day.folder / "bench"), N_CLIPS))
    on_disk, in_s3, on_ray = "eval on a disk", "eval in s3", "eval on ray"
    disk = day.held.enter_context(small_disk(_make(day.folder / "disk"), megabytes=32))
    day.faults.append(fill_disk(on_disk, disk))
    place = partial(_name_run, StorageLocation(str(disk)))
    bench.add(on_disk, place, environment=day.add_clock(on_disk), first=SLEEP)

    store = day.held.enter_context(faulty_store(_make(day.folder / "weed")))
    day.faults += [cut("s3", store.proxy), stop("s3", lambda: store.process.pid)]
    day.faults.append(restart("s3", store.kill, store.start))
    environment = store.environment(day.folder / "state") | day.add_clock(in_s3)
    place = partial(_name_run, store.place("runs"))
    bench.add(in_s3, place, environment=environment, first=SLEEP)

    if with_ray:
        place = partial(_name_run, StorageLocation(str(_make(day.folder / "ray"))))
        bench.add(on_ray, place, options=("--engine", "ray"))


def _name_run(folder: StorageLocation, number: int) -> StorageLocation:
    return folder / f"run-{number}"


def answer(question: bytes) -> str:
    """Return a scripted answer to `trace` or `realism`; the score depends on the frames."""
    if b"coordinates" in question:
        return ANSWERS["trace"]
    return f"<answer>{1 + hashlib.sha256(question).digest()[0] % 5}</answer>"


def add_reward(day: ChaosDay, postgres: Any, pictures: list[bytes]) -> None:
    """Serve rewards with their cache in PostgreSQL, and send clips."""
    chat, cut_chat = day.open_chat("reward", say=answer, delay_s=0.2)
    folder = _make(day.folder / "reward")
    sha256 = hashlib.sha256(TOKEN.encode()).hexdigest()
    token = f'[[token]]\nname = "trainer"\nsha256 = "{sha256}"\nscopes = ["reward"]\n'
    (folder / "tokens.toml").write_text(token)
    values = {
        "always-real": f"{MODEL}@http://127.0.0.1:{cut_chat.port}/v1",
        "@postgres/": f"@127.0.0.1:{postgres.port}/",
    }
    port = free_port()
    environment = {"PGPASSWORD": postgres.password} | day.add_clock("reward")
    service = build_service("reward", port, folder=folder, values=values, environment=environment)
    day.add_service(service)
    proxy = day.open_proxy("client of reward", port)
    address = f"http://127.0.0.1:{proxy.port}"
    record = LoadRecord("reward")
    day.loads.append(RewardLoad(record, address, TOKEN, pictures, chat, day.is_over))


def add_desk(day: ChaosDay, picture: bytes) -> None:
    """Open the desk for the people of a proxy, and drop clips."""
    chat, cut_chat = day.open_chat("desk", say=answer, delay_s=0.5)
    folder = _make(day.folder / "desk")
    (folder / "desk.toml").write_text(
        f'[proxy]\naddress = "127.0.0.1"\nuser_header = "{USER_HEADER}"\n'
        "[[reviewers]]\nname = 'One'\nprotocols = ['trace', 'realism']\n"
        f"models = ['{MODEL}@http://127.0.0.1:{cut_chat.port}/v1']\n"
    )
    port = free_port()
    service = build_service("desk", port, folder=folder, values={})
    address = f"http://127.0.0.1:{port}"
    record = LoadRecord("desk")
    load = DeskLoad(record, address, folder / "cases", picture, "One", chat, day.is_over)
    service.on_end = load.check
    day.add_service(service)
    day.loads.append(load)


def add_campaign(day: ChaosDay, postgres: Any, picture: bytes, program: Path) -> None:
    """Start Label Studio with its tables in PostgreSQL, and let people answer."""
    folder = _make(day.folder / "studio")
    ledger = postgres.address("unreel")
    environment = {"UNREEL_LEDGER": ledger, "UNREEL_STATE": str(folder / "state")}
    port = free_port()
    values = {"/opt/label-studio/bin/label-studio": str(program)}
    service = build_service(
        "label-studio", port, folder=folder, values=values, environment=environment
    )
    day.add_service(service)
    state = folder / "state" / "studio"
    proxy = day.open_proxy("label-studio", port)
    environment |= day.add_clock("push and pull")
    own = _make(folder / "commands")  # a state folder whose server is the proxy
    shutil.copy(state / "secrets.json", own)
    told = {"address": f"http://127.0.0.1:{proxy.port}", "media": str(state / CLIPS)}
    (own / "studio.json").write_text(json.dumps(told))
    load = CampaignLoad(
        LoadRecord("campaign"),
        told["address"],
        ledger,
        own,
        _make(folder / "films"),
        picture,
        environment,
        day.is_over,
    )
    for name in ("push", "pull"):
        day.faults.append(kill(name, partial(load.find_pid, name)))
        day.faults.append(stop(name, partial(load.find_pid, name)))
    day.loads.append(load)


@contextmanager
def open_day(options: argparse.Namespace) -> Any:
    """Start everything; yield the day."""
    pictures = [
        synthesise(ClipRecipe(width=64, height=64, n_frames=8, seed=seed))
        for seed in range(N_PICTURES)
    ]
    with tempfile.TemporaryDirectory(prefix="unreel-day-") as name, ExitStack() as held:
        day = ChaosDay(Path(name), held)
        postgres = add_postgres(day)
        starts = [
            partial(add_reward, day, postgres, pictures),
            partial(add_desk, day, pictures[0]),
            partial(add_evals, day, with_ray=options.ray),
        ]
        if options.label_studio:
            program = options.label_studio.absolute()
            starts.insert(0, partial(add_campaign, day, postgres, pictures[0], program))
        with ThreadPoolExecutor(len(starts)) as pool:
            for started in [pool.submit(start) for start in starts]:
                started.result()
        yield day


def run_load(load: Any) -> None:
    """Run one load; an exception is a broken invariant."""
    try:
        load.run()
    except Exception as error:  # noqa: BLE001  shown with the result
        load.record.expect(f"the load ended: {type(error).__name__}: {error}", holds=False)


def run_day(options: argparse.Namespace) -> dict[str, Any]:
    """Run the loads under faults, end the faults, wait for the loads, and return all counts."""
    log: list[dict[str, Any]] = []

    def note(line: dict[str, Any]) -> None:
        log.append(line)
        sys.stderr.write(json.dumps(line) + "\n")
        sys.stderr.flush()

    with open_day(options) as day:
        note({"ready_s": day.ready_s})
        threads = [
            threading.Thread(target=run_load, args=(load,), daemon=True) for load in day.loads
        ]
        for thread in threads:
            thread.start()
        schedule = FaultSchedule(day.faults, options.seed, 60 * options.minutes, note)
        schedule.run()
        note({"faults": "over"})
        day.is_over.set()
        until_s = time.monotonic() + DRAIN_S
        for load, thread in zip(day.loads, threads, strict=True):
            thread.join(max(0.0, until_s - time.monotonic()))
            words = f"the work did not end within {DRAIN_S:g} s"
            load.record.expect(words, holds=not thread.is_alive())
        note({"work": "ended"})
        records = [schedule.record, *(load.record for load in day.loads)]
        starts = {service.name: service.n_starts for service in day.services}
        return {
            "minutes": options.minutes,
            "seed": options.seed,
            "ready_s": day.ready_s,
            "starts": starts,
            "counts": {record.name: dict(sorted(record.counts.items())) for record in records},
            "violations": [f"{one.name}: {text}" for one in records for text in one.violations],
            "log": log,
        }


def _make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20, help="Minutes with faults.")
    parser.add_argument("--seed", type=int, default=1, help="Random seed of the faults.")
    parser.add_argument("--label-studio", type=Path, help="Label Studio's program.")
    parser.add_argument("--ray", action="store_true", help="Also evaluate on Ray.")
    return parser.parse_args(words)


def main() -> None:
    result = run_day(parse_options())
    print(json.dumps(result, indent=1))
    sys.exit(bool(result["violations"]))


if __name__ == "__main__":
    main()
