"""Clients of a chaos day: clips for the reward service, and clips that are dropped on the desk."""

import json
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import httpx

from chaos.day.faults import LoadRecord
from reliability.trial import Chat
from reward_process import padded
from unreel.asking.answer_table import ANSWERS
from unreel.engine.location import StorageLocation
from unreel.engine.table import LanceTable

REPLY_WITHIN_S = 300.0
"""A request without a reply by then has no end: the service's own deadline is 120 s."""
N_CLIENTS = 3
PAUSE_S = 2.0
"""Pause of each client between clips, since every clip is sent once more when the faults are over."""
USER_HEADER = "X-Auth-Request-Email"
ENDS_WITHIN_S = 600.0
MOST_OPEN_CASES = 6
"""No clip is dropped while so many cases are open: a slow machine must finish them at the end."""


@dataclass
class RewardLoad:
    """Trainers that send clips to the reward service, each until it has a value or a reason."""

    record: LoadRecord
    address: str
    token: str
    pictures: list[bytes]
    chat: Chat
    is_over: threading.Event
    values: dict[int, float | None] = field(default_factory=dict)

    def run(self) -> None:
        """Send clips until the faults are over, then every clip once more."""
        threads = [threading.Thread(target=self._send, args=(n,)) for n in range(N_CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._send_again()

    def _send(self, number: int) -> None:
        with self._connect() as client:
            while not self.is_over.is_set():
                self.values[number] = self._ask(client, number)
                number += N_CLIENTS
                self.is_over.wait(PAUSE_S)

    def _connect(self) -> httpx.Client:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=REPLY_WITHIN_S)

    def _ask(self, client: httpx.Client, number: int) -> float | None:
        """Send one clip until a reply has its value or a reason; count each request's end."""
        clip = padded(self.pictures[number % len(self.pictures)], number)
        fields = {"request": json.dumps({"items": [{"video": {"upload": "clip"}}]})}
        until_s = time.monotonic() + ENDS_WITHIN_S
        while time.monotonic() < until_s:
            self.record.count("requests")
            try:
                reply = client.post("/v1/rewards", data=fields, files={"clip": clip})
            except httpx.TimeoutException:
                self.record.count("end: none in time")
                self.record.expect(f"no reply within {REPLY_WITHIN_S:g} s", holds=False)
            except httpx.TransportError:
                self.record.count("end: connection closed, sent again")
            else:
                if reply.status_code == HTTPStatus.OK:
                    (result,) = reply.json()["results"]
                    is_value = result["value"] is not None
                    words = "value" if is_value else f"null, {result['failure']['reason']}"
                    self.record.count(f"end: {words}")
                    return float(result["value"]) if is_value else None
                self.record.count(f"end: refused with {reply.status_code}, sent again")
            time.sleep(0.5)
        self.record.expect(f"clip {number} had no end within {ENDS_WITHIN_S:g} s", holds=False)
        return None

    def _send_again(self) -> None:
        """Send every clip again: values stay, and no stored answer is asked for again."""
        valued = {number: value for number, value in self.values.items() if value is not None}
        n_asked = len(self.chat.asked)
        with self._connect() as client:
            again = {number: self._ask(client, number) for number in valued}
            n_repeated = len(self.chat.asked) - n_asked
            rest = {n: self._ask(client, n) for n in self.values if n not in valued}
        changed = [number for number in valued if again[number] != valued[number]]
        self.record.count("clips", len(self.values))
        self.record.count("clips with a value, asked again at the end", len(valued))
        self.record.count("questions for them", n_repeated)
        self.record.expect(f"values of {changed} changed", holds=not changed)
        self.record.expect(f"{n_repeated} stored answers asked again", holds=not n_repeated)
        nulls = [number for number, value in rest.items() if value is None]
        self.record.expect(f"clips {nulls} are null without faults", holds=not nulls)
        for picture in range(len(self.pictures)):
            ends = {v for n, v in (again | rest).items() if n % len(self.pictures) == picture}
            self.record.expect(f"picture {picture} has values {ends}", holds=len(ends) <= 1)


@dataclass
class DeskLoad:
    """Somebody who drops a clip on the desk every few seconds."""

    record: LoadRecord
    address: str
    cases: Path
    picture: bytes
    reviewers: str
    chat: Chat
    is_over: threading.Event
    accepted: list[str] = field(default_factory=list)
    """Ids of cases whose upload was answered."""
    _committed: dict[str, str] = field(default_factory=dict)
    _n_asked: int = 0

    def run(self) -> None:
        """Upload clips until the faults are over, then wait for the end of every case."""
        number = 0
        with httpx.Client(base_url=self.address, timeout=REPLY_WITHIN_S) as client:
            client.headers.update({"origin": self.address, USER_HEADER: "ada@example.org"})
            while not self.is_over.is_set():
                if self._count_open() < MOST_OPEN_CASES:
                    self.record.count("uploads")
                    self._upload(client, padded(self.picture, number), f"{number}.mp4")
                    number += 1
                self.is_over.wait(4)
        until_s = time.monotonic() + ENDS_WITHIN_S
        while self._count_open() and time.monotonic() < until_s:
            time.sleep(1)
        self.check()
        self._check_cases()

    def _upload(self, client: httpx.Client, clip: bytes, name: str) -> None:
        try:
            page = client.get("/")
            form_token = page.text.split('name="form_token" value="')[1].split('"')[0]
            form = {"form_token": form_token, "reviewers": self.reviewers}
            reply = client.post("/cases", data=form, files=[("clips", (name, clip))])
        except httpx.TimeoutException:
            self.record.expect(f"no reply within {REPLY_WITHIN_S:g} s", holds=False)
        except (httpx.TransportError, IndexError):
            self.record.count("end: connection closed")
        else:
            self.record.count(f"end: {reply.status_code}")
            if reply.status_code == HTTPStatus.SEE_OTHER:
                self.accepted.append(reply.headers["location"].strip("/").rpartition("/")[2])

    def _count_open(self) -> int:
        return sum(not self._find_end(case) for case in self.cases.glob("cases/*"))

    def _find_end(self, case: Path) -> str:
        log = case / "log.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        last = json.loads(lines[-1])["event"] if lines else ""
        return last if last in {"finished", "failed"} else ""

    def check(self) -> None:
        """Compare the stored answers with those of the last call; no process of the desk runs."""
        after: dict[str, str] = {}
        for path in self.cases.glob("cases/*/answers.lance"):
            table = LanceTable(StorageLocation(str(path.parent)) / path.name, ANSWERS)
            rows = list(table.rows(["key", "text"])) if table.exists() else []
            keys = [row["key"] for row in rows]
            self.record.expect(f"{path}: doubled keys", holds=len(keys) == len(set(keys)))
            after |= {row["key"]: row["text"] for row in rows if row["text"] is not None}
        lost = [key for key, text in self._committed.items() if after.get(key) != text]
        asked = self.chat.asked[self._n_asked :]
        repeated = [key for key in asked if key in self._committed]
        self.record.expect(f"{len(lost)} committed answers lost or changed", holds=not lost)
        self.record.expect(f"{len(repeated)} committed questions repeated", holds=not repeated)
        self.record.count("committed answers seen again", len(self._committed))
        self.record.count("questions asked", len(asked))
        self._committed, self._n_asked = after, self._n_asked + len(asked)

    def _check_cases(self) -> None:
        ends = {case.name: self._find_end(case) for case in self.cases.glob("cases/*")}
        self.record.count("cases", len(ends))
        self.record.count("cases accepted", len(self.accepted))
        self.record.count("answers", len(self._committed))
        for end in ends.values():
            self.record.count(f"cases {end or 'open'}")
        missing = [case for case in self.accepted if case not in ends]
        self.record.expect(f"cases {missing} are missing", holds=not missing)
        open_ones = [case for case, end in ends.items() if not end]
        self.record.expect(f"cases {open_ones} did not end", holds=not open_ones)
