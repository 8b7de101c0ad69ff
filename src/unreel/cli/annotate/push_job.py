"""Implementation of `unreel annotate up`, `push`, `links`, `pull` and `status`: Label Studio."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unreel.annotation.campaign import AnnotationInterface, Annotator
from unreel.annotation.campaign_push import (
    CampaignPushContext,
    CampaignPushSettings,
    push_campaign_tasks,
    write_screening_decisions,
)
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.pairs import read_pair_file
from unreel.annotation.studio.client import (
    LabelStudioClient,
    LabelStudioServerSettings,
    find_studio_connection,
    get_studio_state_folder,
)
from unreel.annotation.studio.projects import ProjectAlteration, list_annotator_project_links
from unreel.annotation.studio.pull import CampaignPullResult, pull_campaign_annotations
from unreel.annotation.studio.server import (
    create_studio_database,
    find_label_studio_program,
    read_account_passwords,
    start_label_studio,
)
from unreel.annotation.tasks import read_prefilled_answers
from unreel.api.annotation import open_campaign
from unreel.cli.output import SILENCE, echo, print_json, print_message, print_table
from unreel.cli.process_signals import StopSignalReceived
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.estimate import Estimate, Measured
from unreel.core.settings import (
    EnvironmentSettings,
    read_environment_settings,
    read_storage_options,
)
from unreel.engine.location import StorageLocation, resolve_location
from unreel.engine.progress import Progress
from unreel.engine.storage_access import build_clip_access_settings
from unreel.media.access import require_sandbox_protection

_SHOWN_UNUSABLE = 10
"""Maximum number of unusable answers that the status lists."""


def run_label_studio(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Start Label Studio, print its URL, and keep it running until the command is stopped."""
    settings = read_environment_settings()
    folder = get_studio_state_folder(settings, options["state"])
    plan = LabelStudioServerSettings(
        program=find_label_studio_program(options["program"]),
        folder=folder,
        host=options["host"],
        port=options["port"],
        database=create_studio_database(resolve_ledger_url(options["ledger"], settings)),
    )
    with ExitStack() as stack:
        with ProgressMeter() as meter:
            meter.tell("starting Label Studio")
            server = stack.enter_context(start_label_studio(plan, tell=meter.tell))
        try:
            studio = find_studio_connection(folder)
            if as_json:
                print_json({"address": studio.address, "state": folder, "media": studio.media})
            else:
                print_message("Label Studio runs. Ctrl-C ends it. Its address:")
                echo(studio.address)
            SILENCE.stop()
            server.wait()
        except StopSignalReceived:
            print_message("unreel: ending Label Studio")


_SHOWN = 10


@contextmanager
def open_label_studio_and_ledger(
    options: Mapping[str, Any], settings: EnvironmentSettings
) -> Iterator[tuple[LabelStudioClient, Ledger]]:
    """Open the Label Studio server and the ledger that the command options name."""
    folder = get_studio_state_folder(settings, options["state"])
    address = resolve_ledger_url(options["ledger"], settings)
    connection = find_studio_connection(folder, url=options["url"])
    with (
        LabelStudioClient(connection, in_clear=options["in_clear"]) as client,
        open_ledger(address) as ledger,
    ):
        yield client, ledger


def push_campaign(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Create the tasks of a campaign in Label Studio, print the result, and exit the process."""
    settings = read_environment_settings()
    guidelines: Path | None = options["guidelines"]
    word = options["interface"]
    known = {i.value: i for i in AnnotationInterface}
    if word not in known:
        raise UnknownNameError("interface", word, list(known))
    order = CampaignPushSettings(
        benchmark=options["bench"],
        campaign=options["campaign"],
        interface=known[word],
        annotators=parse_annotators(options["annotators"]),
        overlap=options["overlap"],
        seed=options["seed"],
        question=options["question"],
        n_gold=options["gold"],
        prefill=read_prefilled_answers(options["prefill"]) if options["prefill"] else {},
        pairs=_read_pairs_option(options),
        guidelines=guidelines.read_text(encoding="utf-8") if guidelines else "",
    )
    require_sandbox_protection(settings, trusted=options["trusted"])
    with (
        open_label_studio_and_ledger(options, settings) as (client, ledger),
        ProgressMeter() as meter,
    ):
        desk = CampaignPushContext(
            ledger=ledger,
            client=client,
            place=_resolve_media_location(options["media"], client, settings),
            access=build_clip_access_settings(settings, trusted=options["trusted"]),
            folder=get_studio_state_folder(settings, options["state"]),
        )
        report = push_campaign_tasks(order, desk, meter.callbacks())
    if as_json:
        print_json(report)
    else:
        for name, failure in list(report.failures.items())[:_SHOWN]:
            print_message(f"not shown: {name}: {failure}")
        for row in report.rejected[:_SHOWN]:
            print_message(f"not shown: {row}")
        n_more = len(report.failures) + len(report.rejected) - 2 * _SHOWN
        if n_more > 0:
            print_message(f"and {n_more} more; --json lists all")
        pushed = report.pushed
        print_project_changes(pushed.altered)
        echo(
            f"{report.campaign}: {report.tasks:,} tasks, {report.new_tasks:,} of them new "
            f"(batch {report.batch}); {pushed.sent:,} sent into {pushed.rooms} rooms, "
            f"{pushed.there:,} there already"
        )
        print_message(f"Send annotators their links: unreel annotate links {report.campaign}")
    sys.exit(1 if report.failures or report.rejected or report.pushed.altered else 0)


def print_project_changes(altered: Sequence[ProjectAlteration]) -> None:
    """Print the changes of each project that was changed in Label Studio."""
    for change in altered:
        tasks = {"changed": change.changed_tasks, "added": change.added_tasks}
        tasks["deleted"] = change.missing_tasks
        what = [*change.settings, *(f"{n} tasks {word}" for word, n in tasks.items() if n)]
        print_message(
            f"changed on the server: the project {change.room} in Label Studio: {', '.join(what)}"
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
    if altered:
        print_message("Label Studio 1.23 does not record which account changes a project or a task")


def parse_annotators(text: str) -> tuple[Annotator, ...]:
    """Parse `name=email` pairs, by comma or a line each in a file; the default name is the part before `@`."""
    file = Path(text)
    is_file = "@" not in text and file.is_file()
    entries = file.read_text(encoding="utf-8-sig").splitlines() if is_file else text.split(",")
    people = []
    for entry in filter(None, (entry.strip() for entry in entries)):
        name, _, email = entry.rpartition("=")
        people.append(Annotator(name or email.partition("@")[0].lower(), email))
    if not people or len({person.name for person in people}) < len(people):
        raise InvalidSettingError(
            "--annotators",
            "it names no annotator, or one twice",
            "Write ada=ada@example.org,ben=ben@example.org, or the name of a file",
        )
    return tuple(people)


def _read_pairs_option(options: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if not options["pairs"]:
        return ()
    if options["interface"] != AnnotationInterface.PREFERENCE:
        raise InvalidSettingError(
            "--pairs",
            f"{options['interface']} shows one clip at a time",
            "Take --interface preference, or no --pairs",
        )
    return tuple(read_pair_file(options["pairs"]))


def _resolve_media_location(
    text: str | None, client: LabelStudioClient, settings: EnvironmentSettings
) -> StorageLocation:
    if text:
        location = resolve_location(text, read_storage_options(settings))
        if location.is_local:
            raise InvalidSettingError(
                "--copies",
                f"Label Studio does not serve {text}",
                "Give s3://BUCKET/PREFIX, or leave it out",
            )
        return location
    if client.media is None:
        raise InvalidSettingError(
            "--copies",
            "the URL of the copies for browsers is missing",
            "Give s3://BUCKET/PREFIX: a Label Studio elsewhere serves no files of this machine",
        )
    return StorageLocation(str(client.media))


def print_annotator_links(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the links of a campaign, one row for each annotator and batch."""
    settings = read_environment_settings()
    passwords = read_account_passwords(get_studio_state_folder(settings, options["state"]))
    with open_label_studio_and_ledger(options, settings) as (client, ledger):
        links = list_annotator_project_links(ledger, options["campaign"], address=client.address)
    rows = [asdict(link) for link in links]
    if options["passwords"]:
        rows = [row | {"password": passwords.get(row["login"].lower(), "-")} for row in rows]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(tuple(rows[0]), rows)
    else:
        print_message(
            f"no room of {options['campaign']} is made yet: `unreel annotate push` makes them"
        )


def pull_campaign_answers(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Fetch new answers from Label Studio, print the result, and exit the process."""
    campaign, decided = options["campaign"], {}
    with open_label_studio_and_ledger(options, read_environment_settings()) as (client, ledger):
        with ProgressMeter() as meter:
            meter.tell("asking Label Studio")

            def show(pull_result: CampaignPullResult) -> None:
                meter.step("annotations", Progress(done=pull_result.seen))

            pulled = pull_campaign_annotations(
                client, ledger, campaign, on_project=show, everything=options["everything"]
            )
        if options["decisions"]:
            decided = write_screening_decisions(ledger, campaign, options["decisions"])
    if as_json:
        print_json({"campaign": campaign, **asdict(pulled), "decisions": decided})
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
        print_project_changes(pulled.altered)
        for word, n in decided.items():
            print_message(f"{word}: {n:,} pieces")
    sys.exit(1 if pulled.altered else 0)


def print_campaign_status(options: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the progress of a campaign, one row for each annotator."""
    progress = open_campaign(options["campaign"], ledger=options["ledger"]).status()
    if as_json:
        print_json(progress)
        return
    print_message(
        f"{progress.campaign} ({progress.interface}): {progress.settled:,} of {progress.tasks:,} "
        f"tasks are judged by all assigned annotators; {progress.records:,} annotations are stored"
    )
    columns = ("annotator", "done", "left", "unusable", "median_s", "per_hour", "agreement")
    print_table(
        columns,
        [
            {
                "annotator": person.annotator + (" (excluded)" if person.is_excluded else ""),
                "done": person.done,
                "left": person.left,
                "unusable": person.quarantined,
                "median_s": _format_estimate(person.median_s, places=1),
                "per_hour": "-" if person.per_hour is None else f"{person.per_hour:.0f}",
                "agreement": _format_estimate(person.agreement, places=2),
            }
            for person in progress.people
        ],
    )
    if progress.unusable:
        print_message(f"answers that cannot be used: {len(progress.unusable):,}")
    for text in progress.unusable[:_SHOWN_UNUSABLE]:
        print_message(f"  {text}")
    if (n_more := len(progress.unusable) - _SHOWN_UNUSABLE) > 0:
        print_message(f"  and {n_more:,} more: `unreel annotate report` lists them")


def _format_estimate(measured: Measured, *, places: int) -> str:
    if not isinstance(measured, Estimate):
        return f"- ({measured.why})"
    value, low, high = (
        f"{number:.{places}f}" for number in (measured.value, measured.low, measured.high)
    )
    return f"{value} ({low} to {high}, n = {measured.n})"
