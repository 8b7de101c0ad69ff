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
        Lazy("unreel.cli.annotate:annotate"), "Annotate clips with people in Label Studio."
    ),
    "arena": Word(
        Lazy("unreel.cli.arena:arena"), "Rank creators and reviewers against each other."
    ),
    "benchmarks": Word(
        Lazy("unreel.cli.benchmarks:benchmarks"), "List benchmark layouts, or check your benchmark."
    ),
    "eval": Word(Lazy("unreel.cli.eval:eval_"), "Evaluate models on a benchmark."),
    "compare": Word(Lazy("unreel.cli.compare:compare"), "Compare models on the same clips."),
    "curate": Word(Lazy("unreel.cli.curate:curate"), "Turn raw video into a frozen benchmark."),
    "doctor": Word(Lazy("unreel.cli.doctor:doctor"), "Check the installation."),
    "export": Word(
        Lazy("unreel.cli.export:export"), "Export a benchmark or a run for another tool."
    ),
    "frames": Word(
        Lazy("unreel.cli.frames:frames"), "Write the frames of a sampling plan as JPEG."
    ),
    "probe": Word(Lazy("unreel.cli.probe:probe"), "Print exact properties of video files."),
    "published": Word(
        Lazy("unreel.cli.published:published"), "Print or recompute the papers' figures."
    ),
    "report": Word(Lazy("unreel.cli.report:report"), "Write runs as HTML pages."),
    "review": Word(
        Lazy("unreel.cli.review:review"), "Check single clips for signs of AI generation."
    ),
    "runs": Word(Lazy("unreel.cli.runs:runs"), "List, check or repair runs."),
    "score": Word(Lazy("unreel.cli.score:score"), "Score answers against a benchmark."),
    "serve": Word(Lazy("unreel.cli.serve:serve"), "Serve a checkpoint with vLLM."),
    "train": Word(Lazy("unreel.cli.train:train"), "Train a model on human judgements."),
}


@click.command(
    cls=LateGroup, words=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="unreel", prog_name="unreel")
def unreel() -> None:
    """Detect whether a video looks AI-generated, and where, when and why.

    Data goes to stdout, messages to stderr. Exit status: 0 done; 1 finished with failures; 2 wrong usage,
    or stopped for the reason in the last line; 130 stopped by Ctrl-C.
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
