"""Quickstart: from raw clips to a trained reviewer, a report, a season and a reward, with one command.

    python examples/quickstart/run.py --out quickstart [--label-studio PROGRAM] [--short]

It prints each command before it runs, and its seconds after it. It needs a checkout and the extras
annotate, arena, curate, report, reward and train. Nothing is downloaded: the clips are synthesised, and the trained
model is a tiny one with random weights. See docs/quickstart.md.
"""

import argparse
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests"
CONDITION = "sampling=uniform-4,prompt=direct"
PEOPLE = "ada=ada@example.org,ben=ben@example.org,cleo=cleo@example.org"


@dataclass
class Console:
    """Folder in which commands run; prints each command and stores its seconds."""

    folder: Path
    environment: dict[str, str]
    seconds: list[tuple[str, float]] = field(default_factory=list)

    def run(self, command: str, *, accepted: tuple[int, ...] = (0,)) -> None:
        """Run one command, and exit if its status is not accepted."""
        started = self.start_clock(command)
        status = subprocess.run(
            self.split(command), cwd=self.folder, env=self.environment, check=False
        ).returncode
        self.stop_clock(command, started)
        if status not in accepted:
            sys.exit(f"quickstart: status {status} of: {command}")

    @contextmanager
    def serve(self, command: str, pattern: str) -> Iterator[str]:
        """Run a server, yield the address that matches `pattern`, and stop it at the end."""
        started = self.start_clock(f"{command} &")
        server = subprocess.Popen(
            self.split(command),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            lines = []
            for line in server.stdout or ():
                lines.append(line)
                if found := re.search(pattern, line):
                    break
            else:
                sys.exit(f"quickstart: {command} ended:\n{''.join(lines)}")
            self.stop_clock(command, started)
            yield found[1]
        finally:
            server.terminate()
            server.communicate(timeout=180)  # it finishes the requests that run

    def split(self, command: str) -> list[str]:
        """Return the words of a command, with this environment's `unreel` and `python`."""
        program, *words = shlex.split(command)
        programs = {
            "unreel": str(Path(sys.executable).with_name("unreel")),
            "python": sys.executable,
        }
        return [programs[program], *words]

    def start_clock(self, command: str) -> float:
        """Print the command."""
        print(f"\n$ {command}", flush=True)
        return time.monotonic()

    def stop_clock(self, command: str, started: float) -> None:
        """Print and store the seconds of the command, and print the processor time so far."""
        self.seconds.append((command, time.monotonic() - started))
        spent = measure_processor_time()
        print(f"# {self.seconds[-1][1]:.1f} s; processor time so far {spent:.1f} s", flush=True)


def measure_processor_time() -> float:
    """Return the processor seconds of all commands that ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def write_clips(folder: Path, *, n_clips: int) -> None:
    """Synthesise the raw clips: a drawn street, without faults."""
    sys.path.insert(0, str(TESTS))
    from synthesise import ClipRecipe, synthesise

    folder.mkdir(parents=True)
    for seed in range(n_clips):
        recipe = ClipRecipe(scene="street", width=224, height=128, n_frames=36, seed=seed)
        (folder / f"{seed:02}.mp4").write_bytes(synthesise(recipe))


def annotate(console: Console, program: str) -> None:
    """Run a campaign in a real Label Studio, with simulated annotators."""
    up = f"unreel annotate up --program {shlex.quote(program)} --port {find_free_port()}"
    with console.serve(up, r"(http://\S+)"):
        console.run(
            f"unreel annotate push curated/benchmark --campaign faults --interface trace --overlap 3 --annotators {PEOPLE}"
        )
        campaign = ("faults", "curated/benchmark", "campaign.db", "state/studio")
        console.run(shlex.join(["python", str(HERE / "annotators.py"), *campaign]))
        console.run("unreel annotate pull faults")
    console.run("unreel annotate status faults")
    console.run("unreel annotate quality faults")
    console.run("unreel annotate report faults --out campaign")


def find_free_port() -> int:
    """Return a free port of loopback."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def reward(console: Console) -> None:
    """Serve the trained model as a reward, and score one real and one faulty clip."""
    console.run("unreel reward client --out client.py")
    clips = sorted((console.folder / "season" / "set").rglob("*.mp4"))[:2]
    serve = f"unreel reward serve --model local/trained/model --protocol reality --condition {CONDITION} --port 0 --log rewards.jsonl"
    with console.serve(serve, r"unreel reward: (http://\S+)") as address:
        for clip in clips:
            # Status 1: the answer of a tiny model could not be read, so the reward is a failure and no number.
            console.run(
                f"python client.py {address} {clip.relative_to(console.folder)}", accepted=(0, 1)
            )
    console.run("unreel reward watch rewards.jsonl", accepted=(0, 1))


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description="From raw clips to a reward, with one command.")
    parser.add_argument("--out", type=Path, default=Path("quickstart"), help="New folder.")
    parser.add_argument(
        "--label-studio",
        metavar="PROGRAM",
        default=shutil.which("label-studio"),
        help="Label Studio of another environment; without it the annotation is skipped.",
    )
    parser.add_argument("--short", action="store_true", help="6 clips and 6 training steps.")
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    folder = options.out.resolve()
    os.chdir(folder)
    state = {
        "UNREEL_LEDGER": "campaign.db",
        "UNREEL_STATE": str(folder / "state"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",  # as in the tests of tiny models
    }
    console = Console(folder, {**os.environ, **state})  # noqa: TID251  handed on to commands

    started = console.start_clock("# synthesise raw clips into films/real")
    write_clips(folder / "films" / "real", n_clips=6 if options.short else 24)
    console.stop_clock("synthesise raw clips", started)
    for name in ("curate.toml", "train.toml", "season.toml"):
        shutil.copy(HERE / name, folder / name)

    console.run("unreel curate run curate.toml --out curated")
    if options.label_studio:
        annotate(console, options.label_studio)
        console.run("unreel annotate publish faults --out settled")
    else:
        print(
            "\nNOT ANNOTATED: no Label Studio; give --label-studio PROGRAM. The curated labels are used."
        )
        shutil.copytree(folder / "curated" / "benchmark", folder / "settled")

    console.run(f"python {shlex.quote(str(TESTS / 'tiny_models.py'))} qwen2.5-vl base")
    steps = "--set optimise.max_steps=6" if options.short else ""
    console.run(f"unreel train run train.toml --out trained --trusted {steps}")
    test = f"unreel eval settled --split test --protocol reality --condition {CONDITION}"
    console.run(f"{test} --model local/trained/model --out runs/trained", accepted=(0, 1))
    console.run(f"{test} --model coin --model always-real --out runs/baselines")
    console.run("unreel arena plan season.toml --pin")
    console.run("unreel arena run season.toml --out season", accepted=(0, 1))
    console.run("unreel arena rank season.toml --out season")
    console.run("unreel report runs --out report")
    reward(console)

    print(f"\n{'seconds':>8}  command")
    for command, seconds in console.seconds:
        print(f"{seconds:8.1f}  {command[:90]}")
    print(f"{sum(seconds for _, seconds in console.seconds):8.1f}  total")
    print(f"{measure_processor_time():8.1f}  processor time of all commands and servers")
    print(f"open {folder}/report/index.html")


if __name__ == "__main__":
    main()
