"""`unreel annotate`: human judgements through Label Studio."""

import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import click
from pydantic_core import to_json, to_jsonable_python

from unreel.api import annotation as api
from unreel.api import label_studio
from unreel.cli.lazy_group import LazyCommandGroup
from unreel.cli.options import settings_options
from unreel.cli.output import (
    SILENCE,
    Form,
    echo,
    json_option,
    print_json,
    print_message,
    print_table,
    table_format_option,
)
from unreel.cli.process_signals import StopSignalReceived
from unreel.cli.progress import ProgressMeter
from unreel.core.estimate import Estimate, Measured, describe_interval_coverage
from unreel.core.output_files import OutputDirectory
from unreel.core.span import format_seconds
from unreel.engine.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unreel.annotation.campaign import AnnotationTask
    from unreel.annotation.consensus.outcome import CampaignConsensus, Outcome
    from unreel.annotation.studio.projects import ProjectAlteration
    from unreel.annotation.studio.pull import CampaignPullResult

_MAX_SHOWN = 10
"""Maximum number of rejected clips or unusable answers that are printed."""


@click.group(cls=LazyCommandGroup)
def annotate() -> None:
    """Annotate clips with people in Label Studio, and compute their consensus.

    The ledger stores every judgement unchanged; consensus, reviews and exclusions are computed from it.
    """


@annotate.command(short_help="Start Label Studio.")
@settings_options(label_studio.ServerSettings)
@json_option
def up(settings: label_studio.ServerSettings, *, as_json: bool) -> None:
    """Start a Label Studio server for annotators.

    The server stores its data in a second database next to the ledger's, or in a file for a trial. It
    listens on loopback, sign-up requires a link, and telemetry is off. Runs until Ctrl-C or SIGTERM,
    then exits with status 0 and leaves no process behind.
    """
    with ExitStack() as stack:
        with ProgressMeter() as meter:
            meter.tell("starting Label Studio")
            starting = label_studio.start_studio(settings, tell=meter.tell)
            server, studio = stack.enter_context(starting)
        try:
            if as_json:
                print_json(studio)
            else:
                print_message("Label Studio runs. Ctrl-C ends it. Its address:")
                echo(studio["address"])
            SILENCE.stop()
            server.wait()
        except StopSignalReceived:
            print_message("unreel: ending Label Studio")


@annotate.command(short_help="Create annotation tasks in Label Studio.")
@settings_options(label_studio.PushSettings)
@json_option
def push(settings: label_studio.PushSettings, *, as_json: bool) -> None:
    """Create annotation tasks for the clips of BENCH in Label Studio, in a different order for each annotator.

    Clips are copied once to a constant frame rate starting at 0, so that the annotated frame is the
    frame shown. Run it again after a crash or with new clips in BENCH: existing tasks stay, and new
    clips form a new batch. For screening, BENCH is the folder of `unreel curate`, or its queue.

    If a screen or a task was changed in Label Studio, answers since then are quarantined, and the
    screen or task is restored.

    Exits with status 1 if clips cannot be shown, or a project was changed.
    """
    with ProgressMeter() as meter:
        report = label_studio.push_campaign(settings, meter.callbacks())
    pushed = report.pushed
    if as_json:
        print_json(report)
    else:
        for name, failure in list(report.failures.items())[:_MAX_SHOWN]:
            print_message(f"not shown: {name}: {failure}")
        for row in report.rejected[:_MAX_SHOWN]:
            print_message(f"not shown: {row}")
        n_more = len(report.failures) + len(report.rejected) - 2 * _MAX_SHOWN
        if n_more > 0:
            print_message(f"and {n_more} more; --json lists all")
        _print_project_changes(pushed.altered)
        echo(
            f"{report.campaign}: {report.tasks:,} tasks, {report.new_tasks:,} of them new "
            f"(batch {report.batch}); {pushed.sent:,} sent into {pushed.rooms} rooms, "
            f"{pushed.there:,} there already"
        )
        print_message(f"Send annotators their links: unreel annotate links {report.campaign}")
    sys.exit(1 if report.failures or report.rejected or pushed.altered else 0)


def _print_project_changes(alterations: "Sequence[ProjectAlteration]") -> None:
    for change in alterations:
        tasks = {"changed": change.changed_tasks, "added": change.added_tasks}
        tasks["deleted"] = change.missing_tasks
        changes = [*change.settings, *(f"{n} tasks {word}" for word, n in tasks.items() if n)]
        print_message(
            f"changed on the server: the project {change.room} in Label Studio: {', '.join(changes)}"
        )
        print_message(f"  {change.quarantined:,} answers since the last check are quarantined")
        if change.problem:
            print_message(f"  it could not be restored: {change.problem}")
        elif change.settings or change.changed_tasks:
            person = change.room.rpartition("/")[0]
            print_message(
                f"  it is restored; ask {person} to reload the page before the next answer"
            )
        if change.missing_tasks:
            print_message("  `unreel annotate push` sends deleted tasks again")
    if alterations:
        print_message("Label Studio 1.23 does not record which account changes a project or a task")


@annotate.command(short_help="Print the link of each annotator.")
@settings_options(label_studio.LinksSettings)
@json_option
def links(settings: label_studio.LinksSettings, *, as_json: bool) -> None:
    """Print the links of CAMPAIGN, one per annotator and batch. Send each link only to its annotator.

    A link asks for the login and then shows one task after the other. It contains no password; use
    --passwords to print those created by `push`.
    """
    rows = label_studio.list_annotator_links(settings)
    if as_json:
        print_json(rows)
    elif rows:
        print_table(tuple(rows[0]), rows)
    else:
        print_message(
            f"no room of {settings.campaign} is made yet: `unreel annotate push` makes them"
        )


@annotate.command(short_help="Fetch the annotators' answers.")
@settings_options(label_studio.PullSettings)
@json_option
def pull(settings: label_studio.PullSettings, *, as_json: bool) -> None:
    """Fetch the annotators' new and edited answers of CAMPAIGN from Label Studio, and store each once.

    Unusable answers are stored as quarantined, with a reason. If a screen or a task was changed in
    Label Studio, answers since then are quarantined, and the screen or task is restored.

    Exits with status 1 if a screen or a task was changed.
    """
    campaign = settings.campaign
    with ProgressMeter() as meter:
        meter.tell("asking Label Studio")

        def show(result: "CampaignPullResult") -> None:
            meter.step("annotations", Progress(done=result.seen))

        pulled, decisions = label_studio.pull_campaign(settings, show)
    if as_json:
        print_json({"campaign": campaign, **asdict(pulled), "decisions": decisions})
    else:
        echo(
            f"{campaign}: {pulled.new:,} new annotations of {pulled.seen:,} seen in {pulled.rooms} rooms"
        )
        if pulled.quarantined:
            print_message(
                f"{pulled.quarantined:,} of them cannot be used; they are stored with their reasons"
            )
        for room in pulled.gone:
            print_message(
                f"the room {room} was deleted in Label Studio; `unreel annotate push` makes it again"
            )
        _print_project_changes(pulled.altered)
        for word, n in decisions.items():
            print_message(f"{word}: {n:,} pieces")
    sys.exit(1 if pulled.altered else 0)


@annotate.command(short_help="Print progress and speed of each annotator.")
@settings_options(api.CampaignSettings)
@json_option
def status(settings: api.CampaignSettings, *, as_json: bool) -> None:
    """Print the progress, speed and agreement of each annotator of CAMPAIGN.

    Reads only the ledger: run `pull` first.
    """
    progress = settings.open_campaign().status()
    if as_json:
        print_json(progress)
        return
    print_message(
        f"{progress.campaign} ({progress.interface}): {progress.settled:,} of {progress.tasks:,} "
        f"tasks are judged by all assigned annotators; {progress.records:,} annotations are stored"
    )
    columns = ("annotator", "done", "left", "unusable", "median_s", "per_hour", "agreement")
    rows = [
        {
            "annotator": person.annotator + (" (excluded)" if person.is_excluded else ""),
            "done": person.done,
            "left": person.left,
            "unusable": person.quarantined,
            "median_s": _format_status_estimate(person.median_s, places=1),
            "per_hour": "-" if person.per_hour is None else f"{person.per_hour:.0f}",
            "agreement": _format_status_estimate(person.agreement, places=2),
        }
        for person in progress.people
    ]
    print_table(columns, rows)
    if progress.unusable:
        print_message(f"answers that cannot be used: {len(progress.unusable):,}")
    for text in progress.unusable[:_MAX_SHOWN]:
        print_message(f"  {text}")
    if (n_more := len(progress.unusable) - _MAX_SHOWN) > 0:
        print_message(f"  and {n_more:,} more: `unreel annotate report` lists them")


def _format_status_estimate(measured: Measured, *, places: int) -> str:
    if not isinstance(measured, Estimate):
        return f"- ({measured.why})"
    value, low, high = (
        f"{number:.{places}f}" for number in (measured.value, measured.low, measured.high)
    )
    return f"{value} ({low} to {high}, n = {measured.n})"


@annotate.command(short_help="Write a page about a campaign, with disagreements first.")
@settings_options(api.ReportSettings)
@json_option
def report(settings: api.ReportSettings, *, as_json: bool) -> None:
    """Write an HTML page about CAMPAIGN, with disagreements first.

    Each disagreement shows the clip with all boxes on one timeline, the texts, and a link to the task. The
    page continues with progress and speed, agreement, accuracy against the ground truth, and unreadable
    answers. It names the annotators; use `publish` for data that you hand on.
    """
    written = api.write_campaign_report(settings, print_message)
    if as_json:
        print_json(written)
        return
    print_message(
        f"{written.n_judged} of {written.n_tasks} tasks judged, {written.n_settled} settled, "
        f"{written.n_disputed} with disagreement"
    )
    if written.n_shown and not written.n_media:
        print_message("the page has no clips: name the folder of the copies with --copies")
    echo(written.page)


@annotate.command(short_help="Print the consensus and the disagreements of each task.")
@settings_options(api.ConsensusListSettings)
@table_format_option
@json_option
def consensus(settings: api.ConsensusListSettings, *, form: Form, as_json: bool) -> None:
    """Print the consensus of each task of CAMPAIGN, with the annotators who disagree.

    The ledger is not changed: another rule computes another consensus from the same judgements.

    Exits with status 1 if no task has a consensus.
    """
    campaign = settings.open_campaign()
    tasks, result = campaign.records.tasks, campaign.consensus(**settings.rule)
    outcomes = result.unsettled if settings.only_open else result.tasks
    if settings.out is not None:
        document = to_json(_build_consensus_document(result, result.tasks, tasks), indent=2)
        OutputDirectory(settings.out.parent).write(settings.out.name, document + b"\n")
    if as_json:
        print_json(_build_consensus_document(result, outcomes, tasks))
    else:
        rows = [api.build_consensus_row(tasks[id_], outcome) for id_, outcome in outcomes.items()]
        print_table(
            ("task", "clip", "state", "answer", "method", "support", "dissent"),
            rows,
            title=f"consensus of {settings.campaign}",
            form=form,
        )
        settled = result.settled.values()
        print_message(
            f"{len(settled)} of {len(result.tasks)} judged tasks settled, "
            f"{sum(bool(outcome.dissent) for outcome in settled)} of them with "
            f"dissent; {len(tasks) - len(result.tasks)} not judged yet",
            *result.notes,
        )
        reasons = Counter(outcome.why.value for outcome in result.unsettled.values())
        for why, n in reasons.most_common():
            print_message(f"  open: {n} {why}")
        if result.unsettled:
            print_message(
                "next: unreel annotate report shows them first; unreel annotate review settles one"
            )
    sys.exit(0 if result.settled or not result.tasks else 1)


def _build_consensus_document(
    result: "CampaignConsensus",
    outcomes: "Mapping[str, Outcome]",
    tasks: "Mapping[str, AnnotationTask]",
) -> dict[str, object]:
    return {
        "interface": result.interface,
        "rule": result.rule,
        "n_tasks": len(tasks),
        "n_judged": len(result.tasks),
        "n_settled": len(result.settled),
        "weights": result.weights,
        "notes": result.notes,
        "tasks": [_build_outcome_document(tasks[id_], outcomes[id_]) for id_ in outcomes],
    }


def _build_outcome_document(task: "AnnotationTask", outcome: "Outcome") -> dict[str, object]:
    row = api.build_consensus_row(task, outcome)
    state = "settled" if row["state"] == "settled" else "open"
    document = _sort_category_lists(to_jsonable_python(outcome))
    return {"task": task.id, "clip": row["clip"], "state": state, "outcome": document}


def _sort_category_lists(value: Any) -> Any:
    """Return a copy of a JSON document with sorted `categories`, so that equal outcomes are equal."""
    if isinstance(value, dict):
        return {
            key: sorted(part) if key == "categories" else _sort_category_lists(part)
            for key, part in value.items()
        }
    return [_sort_category_lists(part) for part in value] if isinstance(value, list) else value


@annotate.command(short_help="Accept the consensus of a task, or send it back.")
@click.option(
    "--accept", "verdict", flag_value="accept", help="Accept the current consensus of the task."
)
@click.option(
    "--send-back",
    "verdict",
    flag_value="send-back",
    help="Reject the current consensus, and send the task back to its annotators.",
)
@settings_options(api.ReviewSettings)
@json_option
def review(
    settings: api.ReviewSettings, *, verdict: Literal["accept", "send-back"] | None, as_json: bool
) -> None:
    """Accept or send back the consensus of TASK (its id, or the name of its clip) in CAMPAIGN.

    The decision is stored in the ledger and applies to the present consensus. If later judgements change the
    consensus, the task needs another review.
    """
    task, outcome = api.review_consensus(settings, verdict=verdict)
    if as_json:
        print_json(_build_outcome_document(task, outcome))
        return
    row = api.build_consensus_row(task, outcome)
    print_message(f"{row['clip']}: {row['state']} {row['answer']}, reviewed by {settings.by}")


@annotate.command(short_help="Print the quality of each annotator, with alarms.")
@settings_options(api.QualitySettings)
@table_format_option
@json_option
def quality(settings: api.QualitySettings, *, form: Form, as_json: bool) -> None:
    """Print the quality of each annotator of CAMPAIGN, with confidence intervals.

    Right: accuracy on known clips. Same answer: agreement with others on the same task. Alarms report
    annotators whose answers changed or whose times are unusual. No annotator is excluded automatically:
    use `exclude`.
    """
    result = settings.open_campaign().quality(passing=settings.passing, seed=settings.seed)
    people = result.people
    if as_json:
        alarms = {name: person.alarms for name, person in people.items()}
        print_json({"quality": result, "alarms": alarms})
        return
    rows = [
        {
            "annotator": name,
            "judged": person.n_judged,
            "right": _format_interval(person.right),
            "same_answer": _format_interval(person.same_answer),
            "median_time": format_seconds(person.pace.median_us) if person.pace else "",
            "alarms": "; ".join(person.alarms),
        }
        for name, person in people.items()
    ]
    columns = ("annotator", "judged", "right", "same_answer", "median_time", "alarms")
    print_table(columns, rows, title=f"annotators of {settings.campaign}", form=form)
    for name, value in result.agreement.overall.items():
        print_message(f"{name}: {value}")
    passes = "meets" if result.qualification.unanimous else "does not meet"
    print_message(
        f"unanimity over {result.qualification.n_shared} clips judged by everyone {passes} "
        f"VideoRealBench's rule of {api.describe_unanimity_rule()}"
    )
    print_message(f"bias by prefilled annotations: {result.pull}")
    estimates = [person.right for person in people.values()]
    estimates += [person.same_answer for person in people.values()]
    print_message(describe_interval_coverage(estimates))
    if any(person.alarms for person in people.values()):
        print_message(
            "next: check the alarms; unreel annotate exclude excludes an annotator's judgements"
        )


def _format_interval(value: Measured) -> str:
    if isinstance(value, Estimate):
        return f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]"
    return ""


@annotate.command(short_help="Exclude an annotator's judgements; they stay in the ledger.")
@settings_options(api.ExclusionSettings)
@json_option
def exclude(settings: api.ExclusionSettings, *, as_json: bool) -> None:
    """Exclude the judgements of ANNOTATOR from CAMPAIGN. They stay in the ledger.

    Consensus, agreement and later publications are computed without them.
    """
    _store_exclusion(settings, counts=False, as_json=as_json)


@annotate.command(short_help="Include an annotator's judgements again.")
@settings_options(api.ExclusionSettings)
@json_option
def include(settings: api.ExclusionSettings, *, as_json: bool) -> None:
    """Include the judgements of ANNOTATOR in CAMPAIGN again."""
    _store_exclusion(settings, counts=True, as_json=as_json)


def _store_exclusion(settings: api.ExclusionSettings, *, counts: bool, as_json: bool) -> None:
    decision = api.decide_exclusion(settings, counts=counts)
    if as_json:
        print_json(decision)
        return
    state = "counts" if decision.counts else "does not count"
    print_message(f"{decision.annotator} {state} in {decision.campaign} from now on")
    print_message(f"{decision.n_now} judgements count, {decision.n_before} did before")
    if not counts:
        print_message(
            f"next: unreel annotate include {decision.campaign} {decision.annotator} reverses it"
        )


@annotate.command(short_help="Merge the annotators' texts with a language model.")
@settings_options(api.PolishSettings)
@json_option
def polish(settings: api.PolishSettings, *, as_json: bool) -> None:
    """Merge the annotators' texts about each clip of CAMPAIGN with a language model.

    The prompt is that of VideoRealBench, and the annotators' own texts are kept. A check flags texts whose meaning may have changed; a polished text is
    used after a person confirmed it. Stored texts are not polished again.

    Exits with status 1 if the model returned no text for a task.
    """
    polished = api.polish_campaign(settings, print_message)
    if as_json:
        documents = [{"clip": original.name, "polished": text} for original, text in polished.texts]
        n_originals = polished.n_originals
        print_json({"texts": documents, "failed": polished.failed, "n_originals": n_originals})
    else:
        rows = [
            {
                "task": text.task,
                "clip": original.name,
                "standing": text.standing if text.original == original.key else "outdated",
                "flags": ", ".join(text.flags) or "-",
                "similarity": "-" if text.similarity is None else f"{text.similarity:.2f}",
            }
            for original, text in polished.texts
        ]
        print_table(("task", "clip", "standing", "flags", "similarity"), rows)
        print_message(f"{len(rows)} of {polished.n_originals} settled clips have a text")
        print_message(*(f"  no text: {f.original.name}: {f.failure}" for f in polished.failed))
        print_message(f"next: unreel annotate confirm {settings.campaign} TASK --by NAME")
    sys.exit(1 if polished.failed else 0)


@annotate.command(short_help="Confirm that a polished text keeps its meaning.")
@settings_options(api.ConfirmSettings)
@json_option
def confirm(settings: api.ConfirmSettings, *, as_json: bool) -> None:
    """Confirm that the polished text of TASK (task id or clip name) keeps the annotators' meaning."""
    clip, text = api.confirm_polished_text(settings)
    if as_json:
        print_json(text)
        return
    print_message(f"{text.standing} by {text.by}: {clip}", *text.text.splitlines())


@annotate.command(short_help="Write the consensus as a benchmark.")
@settings_options(api.PublishSettings)
@json_option
def publish(settings: api.PublishSettings, *, as_json: bool) -> None:
    """Write the consensus of CAMPAIGN as a benchmark for `eval` and `train`.

    The folder also contains every judgement unchanged, the consensus with dissenting annotators, the
    annotators' scores in the metrics of models, and a card with their agreement. Annotators appear under
    numbers unless --names is given.

    Exits with status 1 if clips were excluded.
    """
    published = settings.open_campaign().publish(
        settings.out,
        benchmark=settings.benchmark,
        media=settings.media,
        keep_undecided=settings.keep_undecided,
        names=settings.names,
        seed=settings.seed,
        **settings.rule,
    )
    if as_json:
        print_json(published)
    else:
        print_message(f"{published.n_clips} clips in {published.folder}; its card is README.md")
        if published.n_undecided:
            print_message(
                f"  kept without a decision: {published.n_undecided}, with their original labels"
            )
        for reason, n in Counter(left.why for left in published.left_out).most_common():
            print_message(f"  excluded: {n} {reason}")
        if published.people:
            print_message(
                "people.json contains the quality of the annotators: `unreel report` shows it next to models"
            )
        folder = quote(str(published.folder))
        print_message(f"next: unreel eval {folder} --protocol {published.protocol} --model coin")
    sys.exit(1 if published.left_out else 0)


@annotate.command(short_help="Choose pairs of clips to compare.")
@settings_options(api.PairSettings)
@json_option
def pairs(settings: api.PairSettings, *, as_json: bool) -> None:
    """Choose the pairs of clips of BENCHMARK that annotators compare.

    The plan strict is VideoRealBench's method: 30 clips with scores from 1 to 5, and all 345 pairs with
    different scores. The plan gain selects the pairs with the largest expected information; run it again
    with --campaign after each batch.
    """
    chosen = api.choose_pairs(settings)
    n_clips = len({name for pair in chosen for name in pair})
    if as_json:
        document = {"plan": settings.plan, "seed": settings.seed, "out": settings.out}
        print_json(document | {"n_pairs": len(chosen), "n_clips": n_clips})
        return
    print_message(f"{len(chosen)} pairs of {n_clips} clips")
    print_message(
        f"next: unreel annotate push {settings.benchmark} --interface preference --pairs {settings.out}"
    )
    echo(settings.out)


@annotate.command(short_help="Rank clips by preferences.")
@settings_options(api.RankSettings)
@json_option
def rank(settings: api.RankSettings, *, as_json: bool) -> None:
    """Rank the clips of CAMPAIGN by preferences, or by the answers to a pass-or-fail question.

    Strengths follow the Bradley-Terry model. Intervals resample pairs, or annotators if answers were
    converted into pairs.
    """
    ranking = settings.open_campaign().rank(seed=settings.seed)
    if as_json:
        print_json(ranking)
        return
    print_message(f"{ranking.n_judgements} judgements, {ranking.n_comparisons} comparisons")
    strengths = (clip.strength for clip in ranking.clips)
    print_message(
        f"intervals draw {ranking.drawn}s anew. {describe_interval_coverage(strengths, kind='strength')}"
    )
    rows = [
        {
            "place": clip.place,
            "clip": clip.name,
            "strength": _format_ranked_estimate(clip.strength),
            "believed": _format_ranked_estimate(clip.believed),
            "share": _format_ranked_estimate(clip.share),
        }
        for clip in ranking.clips
    ]
    print_table(("place", "clip", "strength", "believed", "share"), rows)


def _format_ranked_estimate(value: Measured) -> str:
    interval = _format_interval(value)
    return f"{interval} n={value.n}" if isinstance(value, Estimate) else str(value)
