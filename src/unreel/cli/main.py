"""The `unreel` command: a table of words, each loaded when it is typed."""

import resource
import sys
from typing import Final

import click

from unreel.cli.helping import with_nearest
from unreel.cli.late import LateGroup, Word
from unreel.cli.output import SILENCE, say
from unreel.cli.stopping import Stopped, hear_signals
from unreel.cli.streams import guard_streams
from unreel.core.errors import MachineError, told
from unreel.core.registry import Lazy

_ADDRESS_SPACE: Final = 3 << 29
COMMANDS: Final = {
    "annotate": Word(
        Lazy("unreel.cli.annotate:annotate"), "Ask people about clips, and settle what they say."
    ),
    "arena": Word(Lazy("unreel.cli.arena:arena"), "Set creators against reviewers, and rank both."),
    "benchmarks": Word(
        Lazy("unreel.cli.benchmarks:benchmarks"), "Show layouts of benchmarks, or check yours."
    ),
    "eval": Word(Lazy("unreel.cli.eval:eval_"), "Put a benchmark's questions to a reviewer."),
    "compare": Word(
        Lazy("unreel.cli.compare:compare"), "Tell what reviewers differ by on the same clips."
    ),
    "curate": Word(Lazy("unreel.cli.curate:curate"), "Turn raw video into a frozen benchmark."),
    "doctor": Word(Lazy("unreel.cli.doctor:doctor"), "Tell what works on this machine."),
    "export": Word(Lazy("unreel.cli.export:export"), "Take a benchmark or a run to another tool."),
    "frames": Word(
        Lazy("unreel.cli.frames:frames"), "Write the frames that a plan picks, as JPEG."
    ),
    "probe": Word(Lazy("unreel.cli.probe:probe"), "Tell the exact facts of video files."),
    "published": Word(
        Lazy("unreel.cli.published:published"), "Show or recalculate the papers' figures."
    ),
    "report": Word(Lazy("unreel.cli.report:report"), "Show runs as pages to look at."),
    "review": Word(Lazy("unreel.cli.review:review"), "Ask reviewers about single clips."),
    "runs": Word(Lazy("unreel.cli.runs:runs"), "List runs, check one, or mend a copy of it."),
    "score": Word(Lazy("unreel.cli.score:score"), "Score answers against a benchmark."),
    "serve": Word(Lazy("unreel.cli.serve:serve"), "Serve a checkpoint with vLLM."),
    "train": Word(Lazy("unreel.cli.train:train"), "Train a reviewer on people's judgements."),
}


@click.command(
    cls=LateGroup, words=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="unreel", prog_name="unreel")
def unreel() -> None:
    """Tell whether a video looks AI-generated, where, when and why.

    Data goes to stdout, talk to stderr. Status 0: done; 1: finished with failures; 2: asked wrongly, or
    stopped by what the last line says; 130: stopped by Ctrl-C.
    """
    _require_address_space()


def _require_address_space() -> None:
    """Raise if libraries could not be loaded; some of them end the process without a word."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE:
        problem = f"the address space is limited to {limit >> 20} MiB, and libraries take 1.5 GiB"
        remedy = "Run `ulimit -v unlimited`, and limit memory by a control group if you must"
        raise MachineError(problem, remedy)


def main() -> None:
    """Run the command line; what stops it is told in words, with what to do next."""
    guard_streams()
    hear_signals()
    SILENCE.start()
    try:
        sys.exit(unreel(standalone_mode=False))
    except click.ClickException as error:
        with_nearest(error).show(file=sys.stderr)
        sys.exit(error.exit_code)
    except click.Abort:
        say("Aborted!")
        sys.exit(1)
    except Stopped as stopped:
        _tell(stopped, stopped)
        sys.exit(stopped.status)
    except Exception as error:
        known = told(error)
        if known is None:
            raise  # A bug: its trace is what to report.
        _tell(known, error)
        sys.exit(2)


def _tell(words: BaseException, stop: BaseException) -> None:
    for line in (f"unreel: {words}", *getattr(stop, "__notes__", ())):
        say(line)
