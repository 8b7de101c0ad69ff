"""Implementation of `unreel annotate push`, imported when it runs."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from unreel.annotation.campaign import AnnotationInterface, Annotator
from unreel.annotation.campaign_push import (
    CampaignPushContext,
    CampaignPushReport,
    CampaignPushSettings,
    push_campaign_tasks,
)
from unreel.annotation.ledger.connection import open_ledger, resolve_ledger_url
from unreel.annotation.ledger.ledger import Ledger
from unreel.annotation.pairs import read_pair_file
from unreel.annotation.studio.client import LabelStudioClient
from unreel.annotation.studio.project_state import ProjectAlteration
from unreel.annotation.studio.settings import find_studio_connection, get_studio_state_folder
from unreel.annotation.tasks import read_prefilled_answers
from unreel.cli.output import echo, print_json, print_message
from unreel.cli.progress import ProgressMeter
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.settings import (
    EnvironmentSettings,
    read_environment_settings,
    read_storage_options,
)
from unreel.engine.location import StorageLocation, resolve_location
from unreel.engine.storage_access import build_clip_access_settings
from unreel.media.access import require_sandbox_protection

_SHOWN: Final = 10


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
    order = _build_push_settings(options)
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
        _print_push_report(report)
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
        setting, problem = "--annotators", "it names no annotator, or one twice"
        remedy = "Write ada=ada@example.org,ben=ben@example.org, or the name of a file"
        raise InvalidSettingError(setting, problem, remedy)
    return tuple(people)


def _read_pairs_option(options: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    if not options["pairs"]:
        return ()
    if options["interface"] != AnnotationInterface.PREFERENCE:
        setting, problem = "--pairs", f"{options['interface']} shows one clip at a time"
        raise InvalidSettingError(setting, problem, "Take --interface preference, or no --pairs")
    return tuple(read_pair_file(options["pairs"]))


def _build_push_settings(options: Mapping[str, Any]) -> CampaignPushSettings:
    guidelines: Path | None = options["guidelines"]
    return CampaignPushSettings(
        benchmark=options["bench"],
        campaign=options["campaign"],
        interface=_parse_annotation_interface(options["interface"]),
        annotators=parse_annotators(options["annotators"]),
        overlap=options["overlap"],
        seed=options["seed"],
        question=options["question"],
        n_gold=options["gold"],
        prefill=read_prefilled_answers(options["prefill"]) if options["prefill"] else {},
        pairs=_read_pairs_option(options),
        guidelines=guidelines.read_text(encoding="utf-8") if guidelines else "",
    )


def _parse_annotation_interface(word: str) -> AnnotationInterface:
    known = {i.value: i for i in AnnotationInterface}
    if word not in known:
        kind = "interface"
        raise UnknownNameError(kind, word, list(known))
    return known[word]


def _resolve_media_location(
    text: str | None, client: LabelStudioClient, settings: EnvironmentSettings
) -> StorageLocation:
    if text:
        location = resolve_location(text, read_storage_options(settings))
        if location.is_local:
            setting, problem = "--copies", f"Label Studio does not serve {text}"
            raise InvalidSettingError(setting, problem, "Give s3://BUCKET/PREFIX, or leave it out")
        return location
    if client.media is None:
        setting, problem = "--copies", "the URL of the copies for browsers is missing"
        remedy = "Give s3://BUCKET/PREFIX: a Label Studio elsewhere serves no files of this machine"
        raise InvalidSettingError(setting, problem, remedy)
    return StorageLocation(str(client.media))


def _print_push_report(report: CampaignPushReport) -> None:
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
