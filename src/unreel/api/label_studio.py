"""Label Studio server, and the tasks, links and answers of a campaign on the server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unreel.api.annotation import CampaignSettings, StateSettings
from unreel.core.command_options import FILE, NEW_FILE, POSITIVE, Option
from unreel.core.errors import InvalidSettingError, UnknownNameError
from unreel.core.registry import needs_extra
from unreel.core.settings import read_environment_settings, read_storage_options

if TYPE_CHECKING:
    from unreel.annotation.campaign import Annotator
    from unreel.annotation.campaign_push import CampaignPushReport
    from unreel.annotation.ledger.ledger import Ledger
    from unreel.annotation.studio.client import LabelStudioClient, LabelStudioServer
    from unreel.annotation.studio.pull import CampaignPullResult
    from unreel.engine.progress import JobCallbacks


@dataclass(frozen=True, kw_only=True)
class StudioSettings(StateSettings):
    """Settings of a command that contacts Label Studio."""

    url: Annotated[str | None, Option(metavar="ADDRESS")] = None
    """URL of a running Label Studio server. Its access token is read from the variable LABEL_STUDIO_API_KEY.  [default: the server started by `unreel annotate up`]"""
    in_clear: bool = False
    """Send the access token to --url even if the connection is not encrypted (http)."""

    @contextmanager
    def open_studio(self) -> "Iterator[tuple[LabelStudioClient, Ledger]]":
        """Open the Label Studio server and the ledger."""
        with needs_extra("annotate"):
            from unreel.annotation.studio.client import LabelStudioClient, find_studio_connection

        connection = find_studio_connection(self.find_state_folder(), url=self.url)
        with LabelStudioClient(connection, in_clear=self.in_clear) as client, self.open() as ledger:
            yield client, ledger


@dataclass(frozen=True, kw_only=True)
class ServerSettings(StateSettings):
    """Settings of the Label Studio server of `start_studio`."""

    program: Annotated[Path | None, NEW_FILE] = None
    """Path of the Label Studio executable.  [default: label-studio on PATH]"""
    port: Annotated[int, Option(low=1, high=65535)] = 8080
    """TCP port of the server."""
    host: str = "127.0.0.1"
    """Network address on which the server listens. For access from other machines, use a reverse proxy with TLS."""


@contextmanager
def start_studio(
    settings: ServerSettings, *, tell: Callable[[str], None]
) -> "Iterator[tuple[LabelStudioServer, dict[str, Any]]]":
    """Start Label Studio, and yield the server and its address, state folder and folder of clips."""
    with needs_extra("annotate"):
        from unreel.annotation.ledger.connection import resolve_ledger_url
        from unreel.annotation.studio.client import (
            LabelStudioServerSettings,
            create_studio_database,
            find_label_studio_program,
            find_studio_connection,
            start_label_studio,
        )

    folder = settings.find_state_folder()
    plan = LabelStudioServerSettings(
        program=find_label_studio_program(settings.program),
        folder=folder,
        host=settings.host,
        port=settings.port,
        database=create_studio_database(
            resolve_ledger_url(settings.ledger, read_environment_settings())
        ),
    )
    with start_label_studio(plan, on_output=tell) as server:
        studio = find_studio_connection(folder)
        yield server, {"address": studio.address, "state": folder, "media": studio.media}


@dataclass(frozen=True, kw_only=True)
class PushSettings(StudioSettings):
    """Settings of `push_campaign`."""

    bench: Annotated[Path, Option(is_argument=True, kind="existing", metavar="BENCH")]
    campaign: Annotated[str, Option(metavar="NAME")]
    """Name of the new or existing campaign."""
    interface: Annotated[str, Option(metavar="WORD")]
    """Annotation interface: screening, trace, locate, realism, preference, reality or pass-fail."""
    question: str = ""
    """Question that annotators answer with pass or fail. Only for --interface pass-fail."""
    annotators: Annotated[str, Option(metavar="LIST|FILE")]
    """Annotators as NAME=E-MAIL, separated by commas, or a file with one annotator per line."""
    overlap: Annotated[int, POSITIVE] = 3
    """Number of annotators who judge each task."""
    seed: int = 0
    """Random seed for task order, left-right order of pairs, and selection of tasks for --gold and --prefill."""
    gold: Annotated[int, Option(low=0)] = 0
    """Number of tasks with a known answer that each annotator receives, to measure accuracy."""
    prefill: Annotated[Path | None, FILE] = None
    """JSONL file with annotations that annotators see in advance, in a random half of the tasks."""
    pairs: Annotated[Path | None, FILE] = None
    """Table of clip pairs from `unreel annotate pairs`. Only for --interface preference.  [default: all pairs]"""
    guidelines: Annotated[Path | None, FILE] = None
    """HTML file with instructions for annotators.  [default: the instructions of the interface]"""
    copies: Annotated[str | None, Option(metavar="s3://BUCKET/PREFIX")] = None
    """s3:// prefix for the clip copies that annotators see. Their links are valid for 7 days.  [default: a folder in --state]"""
    trusted: bool = False
    """Decode video files without the sandbox, in the process of this command. Use it only for clips that you trust."""


def push_campaign(settings: PushSettings, callbacks: "JobCallbacks") -> "CampaignPushReport":
    """Create the tasks of a campaign in Label Studio.

    Raises:
        UnknownNameError: No interface has that name.
    """
    with needs_extra("annotate"):
        from unreel.annotation.campaign import AnnotationInterface
        from unreel.annotation.campaign_push import (
            CampaignPushContext,
            CampaignPushSettings,
            push_campaign_tasks,
        )
        from unreel.annotation.pairs import read_pair_file
        from unreel.annotation.tasks import read_prefilled_answers
        from unreel.engine.location import StorageLocation, resolve_location
        from unreel.engine.storage_access import build_clip_access_settings
        from unreel.media.access import require_sandbox_protection

    environment = read_environment_settings()
    interfaces = {interface.value: interface for interface in AnnotationInterface}
    if settings.interface not in interfaces:
        raise UnknownNameError("interface", settings.interface, list(interfaces))
    if settings.pairs and settings.interface != AnnotationInterface.PREFERENCE:
        raise InvalidSettingError(
            "--pairs",
            f"{settings.interface} shows one clip at a time",
            "Take --interface preference, or no --pairs",
        )
    push = CampaignPushSettings(
        benchmark=settings.bench,
        campaign=settings.campaign,
        interface=interfaces[settings.interface],
        annotators=parse_annotators(settings.annotators),
        overlap=settings.overlap,
        seed=settings.seed,
        question=settings.question,
        n_gold=settings.gold,
        prefill=read_prefilled_answers(settings.prefill) if settings.prefill else {},
        pairs=tuple(read_pair_file(settings.pairs)) if settings.pairs else (),
        guidelines=settings.guidelines.read_text(encoding="utf-8") if settings.guidelines else "",
    )
    require_sandbox_protection(environment, trusted=settings.trusted)
    with settings.open_studio() as (client, ledger):
        if settings.copies:
            place = resolve_location(settings.copies, read_storage_options(environment))
            if place.is_local:
                raise InvalidSettingError(
                    "--copies",
                    f"Label Studio does not serve {settings.copies}",
                    "Give s3://BUCKET/PREFIX, or leave it out",
                )
        elif client.media is None:
            raise InvalidSettingError(
                "--copies",
                "the URL of the copies for browsers is missing",
                "Give s3://BUCKET/PREFIX: a Label Studio elsewhere serves no files of this machine",
            )
        else:
            place = StorageLocation(str(client.media))
        context = CampaignPushContext(
            ledger=ledger,
            client=client,
            place=place,
            access=build_clip_access_settings(environment, trusted=settings.trusted),
            folder=settings.find_state_folder(),
        )
        return push_campaign_tasks(push, context, callbacks)


def parse_annotators(text: str) -> "tuple[Annotator, ...]":
    """Parse `name=email` pairs, by comma or a line each in a file; the default name is the part before `@`."""
    from unreel.annotation.campaign import Annotator

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
            "names must be given, each once",
            "Write ada=ada@example.org,ben=ben@example.org, or the name of a file",
        )
    return tuple(people)


@dataclass(frozen=True, kw_only=True)
class LinksSettings(StudioSettings, CampaignSettings):
    """Settings of `list_annotator_links`."""

    passwords: bool = False
    """Also print the passwords that `unreel annotate push` created for annotators."""


def list_annotator_links(settings: LinksSettings) -> list[dict[str, Any]]:
    """Return the links of a campaign, one row for each annotator and batch."""
    with needs_extra("annotate"):
        from unreel.annotation.studio.client import read_account_passwords
        from unreel.annotation.studio.projects import list_annotator_project_links

    with settings.open_studio() as (client, ledger):
        links = list_annotator_project_links(ledger, settings.campaign, address=client.address)
    rows = [asdict(link) for link in links]
    if settings.passwords:
        passwords = read_account_passwords(settings.find_state_folder())
        rows = [row | {"password": passwords.get(row["login"].lower(), "-")} for row in rows]
    return rows


@dataclass(frozen=True, kw_only=True)
class PullSettings(StudioSettings, CampaignSettings):
    """Settings of `pull_campaign`."""

    everything: Annotated[bool, Option(name="--all")] = False
    """Fetch all answers, not only new and edited ones. Each answer is stored once."""
    decisions: Annotated[Path | None, NEW_FILE] = None
    """File for the majority decisions of a screening campaign. A curation recipe reads it as `decisions` in [screen]."""


def pull_campaign(
    settings: PullSettings, on_project: "Callable[[CampaignPullResult], None]"
) -> "tuple[CampaignPullResult, dict[str, int]]":
    """Fetch new answers from Label Studio; return the result and the number of clips of each decision."""
    with needs_extra("annotate"):
        from unreel.annotation.campaign_push import write_screening_decisions
        from unreel.annotation.studio.pull import pull_campaign_annotations

    with settings.open_studio() as (client, ledger):
        pulled = pull_campaign_annotations(
            client, ledger, settings.campaign, on_project=on_project, everything=settings.everything
        )
        if not settings.decisions:
            return pulled, {}
        return pulled, write_screening_decisions(ledger, settings.campaign, settings.decisions)
