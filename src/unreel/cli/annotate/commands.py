"""Commands of `unreel annotate`: their options; the implementations are imported when they run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from unreel.cli.annotate import (
    consensus_rule_options,
    label_studio_options,
    label_studio_state_option,
    ledger_option,
)
from unreel.cli.options import layout_option, media_option
from unreel.cli.output import (
    json_option,
    print_json,
    print_message,
    table_format_option,
    trusted_option,
)
from unreel.core.registry import LazyImport


@click.command()
@click.argument("benchmark", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--plan",
    required=True,
    type=click.Choice(["strict", "gain"]),
    help="Method of choosing pairs. strict: all pairs of clips with different scores; gain: the pairs with the largest expected information.",
)
@click.option(
    "--clips",
    type=click.Choice(["vrb", "all"]),
    default="vrb",
    show_default=True,
    help="Clips for --plan strict. vrb: a sample of 30 scored clips, as in VideoRealBench; all: all scored clips.",
)
@click.option(
    "--n",
    type=click.IntRange(1),
    help="Number of pairs to choose.  [default: all for --plan strict, 100 for gain]",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for the sample of clips and for the choice between equally good pairs.",
)
@click.option(
    "--campaign", help="Campaign whose answers so far guide the choice. Only for --plan gain."
)
@layout_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="pairs.csv",
    show_default=True,
    help="CSV table of pairs to write, for `unreel annotate push --pairs`.",
)
@ledger_option
@json_option
def pairs(*, as_json: bool, **options: Any) -> None:
    """Choose the pairs of clips of BENCHMARK that annotators compare.

    The plan strict is VideoRealBench's method: 30 clips with scores from 1 to 5, and all 345 pairs with
    different scores. The plan gain selects the pairs with the largest expected information; run it again
    with --campaign after each batch.
    """
    LazyImport("unreel.cli.annotate.pairs_job:write_pair_table", extra="annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed for the confidence intervals.",
)
@ledger_option
@json_option
def rank(*, as_json: bool, **options: Any) -> None:
    """Rank the clips of CAMPAIGN by preferences, or by the answers to a pass-or-fail question.

    Strengths follow the Bradley-Terry model. Intervals resample pairs, or annotators if answers were
    converted into pairs.
    """
    LazyImport("unreel.cli.annotate.pairs_job:print_clip_ranking", extra="annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="New folder for the benchmark.",
)
@click.option(
    "--benchmark",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="New path of the campaign's benchmark, if it has been moved since `unreel annotate push`.",
)
@consensus_rule_options
@media_option("copy", "link")
@click.option(
    "--keep-undecided",
    is_flag=True,
    help="Also publish clips without a consensus, with the label from the original benchmark. Only for the interfaces reality and pass-fail.",
)
@click.option(
    "--names",
    "named",
    is_flag=True,
    help="Publish the names of the annotators instead of aliases such as annotator-1.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Random seed for the confidence intervals and the annotators' aliases.",
)
@ledger_option
@json_option
def publish(*, as_json: bool, **options: Any) -> None:
    """Write the consensus of CAMPAIGN as a benchmark for `eval` and `train`.

    The folder also contains every judgement unchanged, the consensus with dissenting annotators, the
    annotators' scores in the metrics of models, and a card with their agreement. Annotators appear under
    numbers unless --names is given.

    Exits with status 1 if clips were excluded.
    """
    LazyImport("unreel.cli.annotate.consensus_job:publish_campaign", "annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option(
    "--model",
    help="Language model that merges the annotators' texts, as provider/name@URL. Without it, only the stored merged texts are printed.",
)
@click.option(
    "--again", is_flag=True, help="Merge all texts again, including those with a stored result."
)
@click.option(
    "--quorum",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Minimum number of annotators who must give the same answer, or mark the same trace, for a consensus. Use the same value as for `unreel annotate publish`.",
)
@click.option(
    "--min-overlap",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Minimum number of judgements of a task. A task with fewer has no consensus. Use the same value as for `unreel annotate publish`.",
)
@ledger_option
@json_option
def polish(*, as_json: bool, **options: Any) -> None:
    """Merge the annotators' texts about each clip of CAMPAIGN with a language model.

    The prompt is that of VideoRealBench, and the annotators' own texts are kept. A check flags texts whose meaning may have changed; a polished text is
    used after a person confirmed it. Stored texts are not polished again.

    Exits with status 1 if the model returned no text for a task.
    """
    LazyImport(
        "unreel.cli.annotate.polish_job:polish_campaign_rationales", extra="annotate"
    ).load()(options, as_json=as_json)


@click.command()
@click.argument("campaign")
@click.argument("task")
@click.option(
    "--by", required=True, metavar="NAME", help="Name of the person who makes this decision."
)
@click.option(
    "--reject",
    is_flag=True,
    help="Reject the polished text, because its meaning has changed. The annotators' own texts are used instead.",
)
@ledger_option
@json_option
def confirm(*, as_json: bool, **options: Any) -> None:
    """Confirm that the polished text of TASK (task id or clip name) keeps the annotators' meaning."""
    LazyImport("unreel.cli.annotate.polish_job:confirm_polished_text", extra="annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option(
    "--passing",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="Minimum fraction of right answers, on tasks with a known answer, for an annotator to count as qualified.",
)
@click.option(
    "--seed", default=0, show_default=True, help="Random seed for the confidence intervals."
)
@ledger_option
@table_format_option
@json_option
def quality(*, as_json: bool, **options: Any) -> None:
    """Print the quality of each annotator of CAMPAIGN, with confidence intervals.

    Right: accuracy on known clips. Same answer: agreement with others on the same task. Alarms report
    annotators whose answers changed or whose times are unusual. No annotator is excluded automatically:
    use `exclude`.
    """
    LazyImport("unreel.cli.annotate.consensus_job:print_annotator_quality", "annotate").load()(
        options, as_json=as_json
    )


F = TypeVar("F", bound=Callable[..., Any])


def _add_exclusion_options(command: F) -> F:
    command = click.option(
        "--by",
        default="lead",
        show_default=True,
        metavar="NAME",
        help="Name of the person who makes this decision.",
    )(json_option(ledger_option(command)))
    command = click.option(
        "--why",
        required=True,
        metavar="TEXT",
        help="Reason for the decision, stored in the ledger.",
    )(command)
    return click.argument("campaign")(click.argument("annotator")(command))


@click.command()
@_add_exclusion_options
def exclude(*, as_json: bool, **options: Any) -> None:
    """Exclude the judgements of ANNOTATOR from CAMPAIGN. They stay in the ledger.

    Consensus, agreement and later publications are computed without them.
    """
    _store_exclusion_decision(options, counts=False, as_json=as_json)


@click.command()
@_add_exclusion_options
def include(*, as_json: bool, **options: Any) -> None:
    """Include the judgements of ANNOTATOR in CAMPAIGN again."""
    _store_exclusion_decision(options, counts=True, as_json=as_json)


def _store_exclusion_decision(options: dict[str, Any], *, counts: bool, as_json: bool) -> None:
    job = LazyImport(
        "unreel.cli.annotate.consensus_job:store_annotator_exclusion", "annotate"
    ).load()
    decided = job(options, counts=counts)
    if as_json:
        print_json(decided)
        return
    state = "counts" if decided.counts else "does not count"
    print_message(f"{decided.annotator} {state} in {decided.campaign} from now on")
    print_message(f"{decided.n_now} judgements count, {decided.n_before} did before")
    if not counts:
        print_message(
            f"next: unreel annotate include {decided.campaign} {decided.annotator} reverses it"
        )


@click.command()
@click.argument("campaign")
@consensus_rule_options
@click.option("--open", "only_open", is_flag=True, help="Print only the tasks without a consensus.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file for the consensus of all tasks. The table is printed as well.",
)
@ledger_option
@table_format_option
@json_option
def consensus(*, as_json: bool, **options: Any) -> None:
    """Print the consensus of each task of CAMPAIGN, with the annotators who disagree.

    The ledger is not changed: another rule computes another consensus from the same judgements.

    Exits with status 1 if no task has a consensus.
    """
    job = "unreel.cli.annotate.consensus_job:print_campaign_consensus"
    LazyImport(job, "annotate").load()(options, as_json=as_json)


@click.command()
@click.argument("campaign")
@click.argument("task")
@click.option(
    "--accept", "verdict", flag_value="accept", help="Accept the current consensus of the task."
)
@click.option(
    "--send-back",
    "verdict",
    flag_value="send-back",
    help="Reject the current consensus, and send the task back to its annotators.",
)
@click.option("--take", metavar="ANNOTATOR", help="Annotator whose answer replaces the consensus.")
@click.option(
    "--by",
    required=True,
    metavar="NAME",
    help="Name of the person who makes this decision. It must not be an annotator of the task.",
)
@click.option(
    "--why",
    default="",
    metavar="TEXT",
    help="Reason for the decision, stored in the ledger. Required with --send-back.",
)
@consensus_rule_options
@ledger_option
@json_option
def review(*, as_json: bool, **options: Any) -> None:
    """Accept or send back the consensus of TASK (its id, or the name of its clip) in CAMPAIGN.

    The decision is stored in the ledger and applies to the present consensus. If later judgements change the
    consensus, the task needs another review.
    """
    job = "unreel.cli.annotate.consensus_job:store_consensus_review"
    LazyImport(job, "annotate").load()(options, as_json=as_json)


@click.command()
@click.argument("campaign")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder for the page.",
)
@click.option(
    "--copies",
    "media",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the clip copies that annotators saw.  [default: the folder served by `unreel annotate up`]",
)
@click.option(
    "--url",
    metavar="ADDRESS",
    help="URL of the Label Studio server, for the links from the page to tasks.",
)
@click.option(
    "--most",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Maximum number of disagreements that are shown with a video player. The table lists all tasks.",
)
@consensus_rule_options
@click.option(
    "--seed", default=0, show_default=True, help="Random seed for the confidence intervals."
)
@label_studio_state_option
@ledger_option
@json_option
def report(*, as_json: bool, **options: Any) -> None:
    """Write an HTML page about CAMPAIGN, with disagreements first.

    Each disagreement shows the clip with all boxes on one timeline, the texts, and a link to the task. The
    page continues with progress and speed, agreement, accuracy against the ground truth, and unreadable
    answers. It names the annotators; use `publish` for data that you hand on.
    """
    LazyImport("unreel.cli.annotate.report_job:write_campaign_report", "annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option(
    "--passwords",
    is_flag=True,
    help="Also print the passwords that `unreel annotate push` created for annotators.",
)
@label_studio_options
@ledger_option
@json_option
def links(*, as_json: bool, **options: Any) -> None:
    """Print the links of CAMPAIGN, one per annotator and batch. Send each link only to its annotator.

    A link asks for the login and then shows one task after the other. It contains no password; use
    --passwords to print those created by `push`.
    """
    LazyImport("unreel.cli.annotate.push_job:print_annotator_links", "annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Fetch all answers, not only new and edited ones. Each answer is stored once.",
)
@click.option(
    "--decisions",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the majority decisions of a screening campaign. A curation recipe reads it as `decisions` in [screen].",
)
@label_studio_options
@ledger_option
@json_option
def pull(*, as_json: bool, **options: Any) -> None:
    """Fetch the annotators' new and edited answers of CAMPAIGN from Label Studio, and store each once.

    Unusable answers are stored as quarantined, with a reason. If a screen or a task was changed in
    Label Studio, answers since then are quarantined, and the screen or task is restored.

    Exits with status 1 if a screen or a task was changed.
    """
    LazyImport("unreel.cli.annotate.push_job:pull_campaign_answers", "annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("campaign")
@ledger_option
@json_option
def status(*, as_json: bool, **options: Any) -> None:
    """Print the progress, speed and agreement of each annotator of CAMPAIGN.

    Reads only the ledger: run `pull` first.
    """
    LazyImport("unreel.cli.annotate.push_job:print_campaign_status", "annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.argument("bench", metavar="BENCH", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--campaign", required=True, metavar="NAME", help="Name of the new or existing campaign."
)
@click.option(
    "--interface",
    required=True,
    metavar="WORD",
    help="Annotation interface: screening, trace, realism, preference, reality or pass-fail.",
)
@click.option(
    "--question",
    default="",
    help="Question that annotators answer with pass or fail. Only for --interface pass-fail.",
)
@click.option(
    "--annotators",
    required=True,
    metavar="LIST|FILE",
    help="Annotators as NAME=E-MAIL, separated by commas, or a file with one annotator per line.",
)
@click.option(
    "--overlap",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Number of annotators who judge each task.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Random seed for task order, left-right order of pairs, and selection of tasks for --gold and --prefill.",
)
@click.option(
    "--gold",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of tasks with a known answer that each annotator receives, to measure accuracy.",
)
@click.option(
    "--prefill",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSONL file with annotations that annotators see in advance, in a random half of the tasks.",
)
@click.option(
    "--pairs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Table of clip pairs from `unreel annotate pairs`. Only for --interface preference.  [default: all pairs]",
)
@click.option(
    "--guidelines",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="HTML file with instructions for annotators.  [default: the instructions of the interface]",
)
@click.option(
    "--copies",
    "media",
    metavar="s3://BUCKET/PREFIX",
    help="s3:// prefix for the clip copies that annotators see. Their links are valid for 7 days.  [default: a folder in --state]",
)
@label_studio_options
@ledger_option
@trusted_option
@json_option
def push(*, as_json: bool, **options: Any) -> None:
    """Create annotation tasks for the clips of BENCH in Label Studio, in a different order for each annotator.

    Clips are copied once to a constant frame rate starting at 0, so that the annotated frame is the
    frame shown. Run it again after a crash or with new clips in BENCH: existing tasks stay, and new
    clips form a new batch. For screening, BENCH is the folder of `unreel curate`, or its queue.

    If a screen or a task was changed in Label Studio, answers since then are quarantined, and the
    screen or task is restored.

    Exits with status 1 if clips cannot be shown, or a project was changed.
    """
    LazyImport("unreel.cli.annotate.push_job:push_campaign", "annotate").load()(
        options, as_json=as_json
    )


@click.command()
@click.option(
    "--program",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the Label Studio executable.  [default: label-studio on PATH]",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8080,
    show_default=True,
    help="TCP port of the server.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Network address on which the server listens. For access from other machines, use a reverse proxy with TLS.",
)
@label_studio_state_option
@ledger_option
@json_option
def up(*, as_json: bool, **options: Any) -> None:
    """Start a Label Studio server for annotators.

    The server stores its data in a second database next to the ledger's, or in a file for a trial. It
    listens on loopback, sign-up requires a link, and telemetry is off. Runs until Ctrl-C or SIGTERM,
    then exits with status 0 and leaves no process behind.
    """
    LazyImport("unreel.cli.annotate.push_job:run_label_studio", "annotate").load()(
        options, as_json=as_json
    )
