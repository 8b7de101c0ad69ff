"""The desk under load: `python benchmarks/desk_load.py [PEOPLE] [CLIPS]` (default: 20 people, 200 clips).

With 0 people it measures the first results only.

Each person has a session, drops the same number of clips in two batches, follows the progress of all cases as events, and
looks at the list, a batch and a case and writes notes, with a second between, until all cases have ended. A model on
loopback answers after 0.2 s. Prints the latency of pages and forms with its number, the time of uploads, the resident
memory of the desk over time, and the time from a drop to the first result against `unreel review` of the same clip,
which starts a process. The desk is warm: it has reviewed one clip.
"""

import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from chat import says, serve_chat
from desk.desk_process import drop, running, sign_in
from reward_process import padded
from scripted import ANSWERS
from synthesise import ClipRecipe, synthesise

N_FIRST = 5
UNREEL = str(Path(sys.executable).with_name("unreel"))


def answer(body: bytes, _headers: object) -> object:
    time.sleep(0.2)
    return says(ANSWERS["trace" if b"coordinates" in body else "realism"])


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class LoadTrial:
    """All people of one trial, and what they measured."""

    def __init__(self, cookies: dict[str, str], base: str, token: str, n_clips: int) -> None:
        self.cookies = cookies
        self.base, self.token, self.n_clips = base, token, n_clips
        self.latencies_s: list[float] = []
        self.uploads_s: list[float] = []
        self.n_event_bytes = 0
        self.n_done = 0
        self.is_over = False

    async def visit(self, number: int, clips: list[bytes]) -> None:
        """One person: two drops, then pages until the end."""
        draw = random.Random(number)
        async with httpx.AsyncClient(
            base_url=self.base,
            headers={"origin": self.base},
            cookies=self.cookies,
            timeout=120,
            follow_redirects=True,
        ) as client:
            for half in (clips[::2], clips[1::2]):
                files = [("clips", (f"{number}-{n}.mp4", data)) for n, data in enumerate(half)]
                data = {"form_token": self.token, "reviewers": "One"}
                began_s = time.monotonic()
                reply = await client.post("/cases", data=data, files=files)
                self.uploads_s.append(time.monotonic() - began_s)
                assert reply.status_code == 200, reply.text
                batch = reply.url.path
            following = asyncio.create_task(self.follow(client))
            while not self.is_over:
                page = await self.timed(client.get("/"))
                cases = re.findall(r'href="(/cases/[0-9a-f]+/)"', page.text)
                await self.timed(client.get(batch))
                case = draw.choice(cases)
                await self.timed(client.get(case))
                form = {"form_token": self.token, "text": "a note", "verdict": ""}
                await self.timed(client.post(f"{case}entries", data=form, follow_redirects=False))
                await asyncio.sleep(1)
            following.cancel()

    async def follow(self, client: httpx.AsyncClient) -> None:
        """Reads the progress of all cases, as the page of a browser does."""
        while True:
            async with client.stream("GET", "/events") as reply:
                async for chunk in reply.aiter_bytes():
                    self.n_event_bytes += len(chunk)
            await asyncio.sleep(1)

    async def timed(self, request: object) -> httpx.Response:
        """The reply, whose latency is kept."""
        began_s = time.monotonic()
        reply: httpx.Response = await request  # type: ignore[misc]
        self.latencies_s.append(time.monotonic() - began_s)
        assert reply.status_code in {200, 303}, reply.text
        return reply

    async def watch(self, cases: Path, pid: int) -> None:
        """Ends the trial with the last case; prints memory on the way."""
        began_s, shown = time.monotonic(), 0
        while self.n_done < self.n_clips + 1 + N_FIRST:
            await asyncio.sleep(2)
            logs = [log.read_text() for log in cases.glob("cases/*/log.jsonl")]
            self.n_done = sum('"finished"' in log or '"failed"' in log for log in logs)
            if self.n_done * 10 // self.n_clips > shown:
                shown = self.n_done * 10 // self.n_clips
                spent_s = time.monotonic() - began_s
                print(
                    f"{self.n_done} cases, {spent_s:.0f} s: {resident_mb(pid):.0f} MB", flush=True
                )
        self.is_over = True


async def load(trial: LoadTrial, people: int, data: bytes, cases: Path, pid: int) -> None:
    each = trial.n_clips // people
    own = [[padded(data, person * each + n) for n in range(each)] for person in range(people)]
    visits = [trial.visit(number, clips) for number, clips in enumerate(own)]
    await asyncio.gather(trial.watch(cases, pid), *visits)


def compare_first_result(folder: Path, model: str, data: bytes, link_token: tuple) -> None:
    """Print the times to the first page of the desk and of `unreel review`, in turns."""
    desk_s, review_s = [], []
    for number in range(1 + N_FIRST):
        clip = folder / "clip.mp4"
        clip.write_bytes(padded(data, 10**6 + number))
        desk_s.append(time_drop(link_token[0], link_token[1], clip))
        if number:
            review_s.append(time_review(clip, model, folder / f"out-{number}"))
    print(f"first drop after the start: {desk_s.pop(0):.2f} s")
    ratios = [desk / review for desk, review in zip(desk_s, review_s, strict=True)]
    for name, values in {"desk s": desk_s, "review s": review_s, "desk / review": ratios}.items():
        low, middle, high = np.percentile(values, [0, 50, 100])
        text = f"median {middle:.2f}, range {low:.2f} to {high:.2f}, n {len(values)}"
        print(f"first result: {name}: {text}", flush=True)


def time_drop(client: httpx.Client, token: str, clip: Path) -> float:
    """Seconds from a drop to verdicts on the page."""
    began_s = time.monotonic()
    path = drop(client, token, "One", {clip.name: clip.read_bytes()})
    while 'id="said"' not in client.get(path).text:
        time.sleep(0.05)
    return time.monotonic() - began_s


def time_review(clip: Path, model: str, out: Path) -> float:
    """Seconds from the start of `unreel review` to its evidence page."""
    began_s = time.monotonic()
    command = [UNREEL, "review", str(clip), "--model", model, "--out", str(out)]
    review = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (out / "evidence.html").exists():
        time.sleep(0.02)
    spent_s = time.monotonic() - began_s
    review.wait()
    return spent_s


def main(people: int = 20, n_clips: int = 200) -> None:
    data = synthesise(ClipRecipe(n_frames=16, rate=Fraction(8), seed=1))
    with tempfile.TemporaryDirectory() as name, serve_chat(answer) as port:  # type: ignore[arg-type]
        folder, model = Path(name), f"vllm/qwen3-vl@http://127.0.0.1:{port}/v1"
        (folder / "desk.toml").write_text(f"[[reviewers]]\nname = 'One'\nmodels = ['{model}']\n")
        with running(folder) as (process, link):
            client, token = sign_in(link)
            compare_first_result(folder, model, data, (client, token))
            if not people:
                return
            base = link.partition("/login")[0]
            trial = LoadTrial(dict(client.cookies), base, token, n_clips)
            asyncio.run(load(trial, people, data, folder / "desk-cases", process.pid))
    spent = np.array(trial.latencies_s)
    low, high, most = np.percentile(spent, [50, 95, 100])
    print(f"pages and forms: n {len(spent)}, p50 {low:.3f} s, p95 {high:.3f} s, most {most:.3f} s")
    print(f"events: {trial.n_event_bytes / 1e6:.1f} MB to {people} people")
    print(f"uploads: n {len(trial.uploads_s)}, longest {max(trial.uploads_s):.2f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
