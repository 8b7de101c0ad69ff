"""The `unreel` command: a table of subcommands, each imported at its first use."""

import resource
import sys

import click

from unreel.cli.lazy_group import LazyCommand, LazyCommandGroup, suggest_nearest_choice
from unreel.cli.output import SILENCE, print_message
from unreel.cli.process_signals import StopSignalReceived, install_signal_handlers
from unreel.cli.safe_streams import sanitise_std_streams
from unreel.core.errors import MachineError, convert_to_unreel_error
from unreel.core.registry import LazyImport

_ADDRESS_SPACE = 3 << 29
COMMANDS = {
    "annotate": LazyCommand(
        LazyImport("unreel.cli.annotate:annotate"), "Annotate clips with people in Label Studio."
    ),
    "arena": LazyCommand(
        LazyImport("unreel.cli.arena:arena"), "Rank creators and reviewers against each other."
    ),
    "benchmarks": LazyCommand(
        LazyImport("unreel.cli.benchmarks:benchmarks"),
        "List benchmark layouts, or check your benchmark.",
    ),
    "eval": LazyCommand(LazyImport("unreel.cli.eval:eval_"), "Evaluate models on a benchmark."),
    "calibrate": LazyCommand(
        LazyImport("unreel.cli.calibrate:calibrate"),
        "Measure false alarms on your own real footage.",
    ),
    "compare": LazyCommand(
        LazyImport("unreel.cli.compare:compare"), "Compare models on the same clips."
    ),
    "curate": LazyCommand(
        LazyImport("unreel.cli.curate:curate"), "Turn raw video into a frozen benchmark."
    ),
    "desk": LazyCommand(
        LazyImport("unreel.cli.desk:desk"), "Open a page where people check clips."
    ),
    "doctor": LazyCommand(LazyImport("unreel.cli.doctor:doctor"), "Check the installation."),
    "export": LazyCommand(
        LazyImport("unreel.cli.export:export"), "Export a benchmark or a run for another tool."
    ),
    "frames": LazyCommand(
        LazyImport("unreel.cli.frames:frames"), "Write the frames of a sampling plan as JPEG."
    ),
    "models": LazyCommand(
        LazyImport("unreel.cli.catalogue:models"), "List published checkpoints and their facts."
    ),
    "probe": LazyCommand(
        LazyImport("unreel.cli.frames:probe"), "Print exact properties of video files."
    ),
    "report": LazyCommand(LazyImport("unreel.cli.runs:report"), "Write an HTML report about runs."),
    "review": LazyCommand(
        LazyImport("unreel.cli.review:review"), "Check single clips for signs of AI generation."
    ),
    "reward": LazyCommand(
        LazyImport("unreel.cli.reward:reward"), "Score generated clips as a reward for training."
    ),
    "runs": LazyCommand(LazyImport("unreel.cli.runs:runs"), "List, check or restore runs."),
    "score": LazyCommand(
        LazyImport("unreel.cli.score:score"), "Score answers against a benchmark."
    ),
    "seen": LazyCommand(
        LazyImport("unreel.cli.seen:seen"), "Find clips that were seen before, or parts of them."
    ),
    "serve": LazyCommand(LazyImport("unreel.cli.serve:serve"), "Serve a checkpoint with vLLM."),
    "train": LazyCommand(
        LazyImport("unreel.cli.train:train"), "Train a model on human judgements."
    ),
}


@click.command(
    cls=LazyCommandGroup, words=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="unreel", prog_name="unreel")
def unreel() -> None:
    """Detect whether a video looks AI-generated, and where, when and why.

    Data goes to stdout, messages to stderr. Exit status: 0 done; 1 finished with failures; 2 wrong usage,
    or stopped for the reason in the last line; 130 stopped by Ctrl-C.
    """
    _require_address_space()


def _require_address_space() -> None:
    """Raise if the address-space limit is too low for libraries; some would abort without a message."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE:
        raise MachineError(
            f"the address space is limited to {limit >> 20} MiB, and libraries take 1.5 GiB",
            "Run `ulimit -v unlimited`, and limit memory by a control group if you must",
        )


def main() -> None:
    """Run the command line of unreel; print errors as messages with a remedy."""
    sanitise_std_streams()
    install_signal_handlers()
    SILENCE.start()
    try:
        sys.exit(unreel(standalone_mode=False))
    except click.ClickException as error:
        suggest_nearest_choice(error).show(file=sys.stderr)
        sys.exit(error.exit_code)
    except click.Abort:
        print_message("Aborted!")
        sys.exit(1)
    except StopSignalReceived as stopped:
        _print_exit_message(stopped, stopped)
        sys.exit(stopped.status)
    except Exception as error:
        known = convert_to_unreel_error(error)
        if known is None:
            raise  # A bug: print its traceback.
        _print_exit_message(known, error)
        sys.exit(2)


def _print_exit_message(message: BaseException, stop: BaseException) -> None:
    for line in (f"unreel: {message}", *getattr(stop, "__notes__", ())):
        print_message(line)


if __name__ == "__main__":
    main()
