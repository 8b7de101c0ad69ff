"""What new users type wrongly, typed again: each with the status and the words that it should end with.

python tests/stumbles/replay.py              all of them, with the words that were told
python tests/stumbles/replay.py link key     those whose name holds one of these words
"""

import contextlib
import dataclasses
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from chat import refuses, serve_chat
from footage import film, write_clip

UNREEL = "import sys; sys.argv[0] = 'unreel'; from unreel.cli.main import main; main()"
LONGEST_S = 120

Run = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True, kw_only=True)
class Stumble:
    """One command of a new user, and what it must end with."""

    name: str
    who: str
    types: str
    """`{rejecting}` is the address of a server that knows no key."""
    status: int
    says: tuple[str, ...]
    """On stdout or stderr, whatever the line breaks."""
    never: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """What was typed before it, whatever came of it."""
    within_s: float = LONGEST_S
    files: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    folder: str = "."
    """Where it is typed."""


@dataclass(frozen=True)
class Ending:
    """What a command told, and how it ended."""

    status: int
    text: str
    seconds: float

    def faults(self, wanted: Stumble) -> list[str]:
        """Where this is not what was wanted."""
        told = " ".join(self.text.split())
        return [
            *([f"status {self.status}, not {wanted.status}"] * (self.status != wanted.status)),
            *(f"does not say: {words}" for words in wanted.says if words not in told),
            *(f"says: {words}" for words in wanted.never if words in told),
            *([f"took {self.seconds:.1f} s"] * (self.seconds > wanted.within_s)),
        ]


def load() -> dict[str, Stumble]:
    """All stumbles by name."""
    listed = tomllib.loads(Path(__file__).with_name("stumbles.toml").read_text(encoding="utf-8"))
    kinds = {part.name: part.type for part in dataclasses.fields(Stumble)}
    return {
        name: Stumble(
            name=name,
            **{k: tuple(v) if kinds[k] == tuple[str, ...] else v for k, v in own.items()},
        )
        for name, own in listed.items()
    }


def draw_stock(folder: Path) -> None:
    """What a new user has: a folder of clips of two sides, a clip, and a table of the clips."""
    rows = ["location,label,creator"]
    for number in range(12):
        creator = ("", "veo", "kling")[number % 3]
        path = folder / "clips" / (f"generated/{creator}" if creator else "real") / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(write_clip(film(number, n_frames=24, width=128, height=96)))
        label = "generated" if creator else "real"
        rows.append(f"{path.relative_to(folder)},{label},{creator}")
    shutil.copy(folder / "clips/real/0.mp4", folder / "clip.mp4")
    (folder / "clips.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "elsewhere").mkdir()


@contextlib.contextmanager
def rejecting() -> Iterator[str]:
    """The address of a chat server on loopback that knows no key."""

    with serve_chat(lambda *_: refuses(401, "Incorrect API key provided")) as port:
        yield f"http://127.0.0.1:{port}/v1"


def start(
    *words: str, cwd: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """`unreel` as a shell would start it."""
    return subprocess.run(
        [sys.executable, "-c", UNREEL, *words],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=LONGEST_S,
    )


def replay(stumble: Stumble, folder: Path, server: str, run: Run = start) -> Ending:
    """Type it in `folder`, which holds the stock."""
    for name, text in stumble.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for typed in stumble.before:
        _type(typed, folder, stumble, server, run)
    return _type(stumble.types, folder / stumble.folder, stumble, server, run)


def _type(typed: str, folder: Path, stumble: Stumble, server: str, run: Run) -> Ending:
    program, *words = shlex.split(typed.replace("{rejecting}", server))
    assert program == "unreel"
    inherited = os.environ.items()  # noqa: TID251  handed on to a child
    environment = {k: v for k, v in inherited if not k.endswith("_API_KEY")}
    started = time.monotonic()
    done = run(*words, cwd=folder, environment=environment | stumble.keys)
    return Ending(done.returncode, done.stdout + done.stderr, time.monotonic() - started)


def main() -> int:
    """Replay what is named, tell each ending, and count those that are not as wanted."""
    chosen = [
        stumble
        for name, stumble in load().items()
        if len(sys.argv) == 1 or any(word in name for word in sys.argv[1:])
    ]
    bad = 0
    with tempfile.TemporaryDirectory() as scratch, rejecting() as server:
        stock = Path(scratch) / "stock"
        stock.mkdir()
        draw_stock(stock)
        for number, stumble in enumerate(chosen, 1):
            folder = Path(scratch) / str(number)
            shutil.copytree(stock, folder)
            ending = replay(stumble, folder, server)
            faults = ending.faults(stumble)
            bad += bool(faults)
            print(
                f"{number:2} {'BAD ' if faults else 'good'} {ending.seconds:5.1f} s  {stumble.name}"
            )
            print(f"   $ {stumble.types}   (status {ending.status})")
            print(*(f"   | {line}" for line in ending.text.strip().splitlines()[-12:]), sep="\n")
            print(*(f"   ! {fault}" for fault in faults), sep="\n", end="\n" if faults else "")
    print(f"{len(chosen) - bad} of {len(chosen)} stumbles end as wanted")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
