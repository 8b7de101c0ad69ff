"""Submission of an entry: log it, check it, log the decision, and store an accepted entry."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from unreel.arena.submission.creator_checks import (
    EntryCheckContext,
    EntryCheckResult,
    check_creator_entry,
)
from unreel.arena.submission.entry import (
    ENTRIES,
    EntryFinding,
    EntryFindingSeverity,
    SeasonEntryRecipe,
    SubmittedEntry,
    format_entry_file_name,
    merge_equal_findings,
    store_accepted_entry,
)
from unreel.arena.submission.reviewer_checks import check_reviewer_entry
from unreel.arena.submission.season_log import (
    EntryState,
    SeasonLog,
    SeasonLogEvent,
    append_log_event,
    append_log_events,
    read_season_log,
)
from unreel.core.content_ids import digest
from unreel.core.errors import InvalidSettingError
from unreel.core.output_files import OutputDirectory
from unreel.creators.config import CreatorRecipeSection
from unreel.creators.folder import FolderCreatorConfig
from unreel.engine.location import resolve_location
from unreel.engine.writer_lock import build_writer_lock

_HEARD: Final = frozenset(
    {EntryState.ACCEPTED, EntryState.PLAYED, EntryState.WITHDRAWN, EntryState.RETIRED}
)
ENTERING: Final = "entering"
"""Name of the lock of a submission."""
Clock = Callable[[], int]
"""Function that returns the time in microseconds since 1970, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionResult:
    """Result of a submission: state of the entry, attempt number and findings."""

    entry: str
    kind: str
    team: str
    state: EntryState
    attempt: int
    findings: tuple[EntryFinding, ...]
    head: str
    """Hash of the log's last line; store it to detect removed lines later."""


def submit_team_entry(
    handed: SubmittedEntry, grounds: EntryCheckContext, *, clock: Clock
) -> SubmissionResult:
    """Log the entry as an attempt of its team, check it, and accept or reject it.

    Raises:
        InvalidSettingError: The season itself has an entrant of that name, or the name has a `/`.
        InvalidValueError: An entry of that name takes part already.
        UnreelError: The log was changed, another submission is running, or the machine lacks
            a component that a check needs.
    """
    _require_free_title(handed.recipe, grounds)
    # Concurrent submissions of one name would overwrite each other's clips.
    with build_writer_lock(resolve_location(str(grounds.folder / ENTERING), {})):
        return _check_and_log_entry(handed, grounds, clock)


def _check_and_log_entry(
    handed: SubmittedEntry, grounds: EntryCheckContext, clock: Clock
) -> SubmissionResult:
    recipe = handed.recipe
    first = _append_submission_event(recipe, grounds.folder, clock)
    checked = _check_entry(recipe, grounds, first)
    findings = merge_equal_findings(checked.findings)
    reasons = tuple(str(finding) for finding in findings)
    identity = _compute_entry_identity(recipe, checked)
    if any(finding.weight is EntryFindingSeverity.REFUSES for finding in findings):
        _remove_entry_folder(recipe, grounds.folder)
        line = append_log_event(
            grounds.folder, _build_next_event(first, EntryState.REFUSED, clock, identity, reasons)
        )
    else:
        append_log_event(
            grounds.folder, _build_next_event(first, EntryState.CHECKED, clock, identity, reasons)
        )
        store_accepted_entry(
            grounds.folder, _pin_entry_clips(recipe, grounds.folder, identity), handed.text
        )
        line = append_log_event(
            grounds.folder, _build_next_event(first, EntryState.ACCEPTED, clock, identity, ())
        )
    return SubmissionResult(
        entry=recipe.title,
        kind=recipe.kind,
        team=recipe.team,
        state=line.event.state,
        attempt=first.attempt,
        findings=findings,
        head=line.own,
    )


def withdraw_team_entry(
    folder: Path, entry: str, *, reason: str, retire: bool, at_us: int
) -> SeasonLogEvent:
    """Log that an entry leaves the season: it is not run again, and its results stay.

    Args:
        folder: Folder of the season.
        entry: Title of the entry.
        reason: Reason for the log; may be empty.
        retire: Whether the organiser removes it, not its team.
        at_us: Time of the event in microseconds since 1970, UTC.

    Raises:
        InvalidValueError: No entry has this title, or it left before.
    """

    def leaves(history: SeasonLog) -> list[SeasonLogEvent]:
        last = next((e for e in reversed(history.events) if e.entry == entry), None)
        state = EntryState.RETIRED if retire else EntryState.WITHDRAWN
        return [
            SeasonLogEvent(
                entry=entry,
                state=state,
                at_us=at_us,
                kind="creator" if last is None else last.kind,
                team="" if last is None else last.team,
                attempt=0 if last is None else last.attempt,
                identity="" if last is None else last.identity,
                reasons=(reason,) if reason else (),
            )
        ]

    (line,) = append_log_events(folder, leaves)
    return line.event


def _require_free_title(recipe: SeasonEntryRecipe, grounds: EntryCheckContext) -> None:
    """Check that the title of the entry cannot be confused with another leaderboard row.

    Raises:
        InvalidSettingError: The season has an entrant of that title, or of that title and a
            setting, or a creator's title contains a `/`.
    """
    season, title = grounds.recipe, recipe.title
    used = {e.name for e in season.creator} | {e.shown for e in season.judges}
    setting, remedy = "name", "Enter under another name"
    if title in used or any(name.startswith(f"{title}/") for name in used):
        problem = f"{title!a} is named in the season itself"
        raise InvalidSettingError(setting, problem, remedy)
    if recipe.kind == "creator" and "/" in title:
        problem = f"{title!a} contains a /, after which leaderboards write the setting"
        raise InvalidSettingError(setting, problem, remedy)


def _append_submission_event(
    recipe: SeasonEntryRecipe, folder: Path, clock: Clock
) -> SeasonLogEvent:
    """Log the submission with its attempt number within the team, before any check."""

    def submitted(history: SeasonLog) -> list[SeasonLogEvent]:
        before = [
            event
            for event in history.events
            if event.state is EntryState.SUBMITTED
            and (event.team, event.kind) == (recipe.team, recipe.kind)
        ]
        return [
            SeasonLogEvent(
                entry=recipe.title,
                state=EntryState.SUBMITTED,
                at_us=clock(),
                kind=recipe.kind,
                team=recipe.team,
                attempt=len(before) + 1,
                seed=None if recipe.creator is None else recipe.creator.seed,
                declared=recipe.declared,
            )
        ]

    (line,) = append_log_events(folder, submitted)
    return line.event


def _build_next_event(
    event: SeasonLogEvent, state: EntryState, clock: Clock, identity: str, reasons: Sequence[str]
) -> SeasonLogEvent:
    return replace(event, state=state, at_us=clock(), identity=identity, reasons=tuple(reasons))


def _check_entry(
    recipe: SeasonEntryRecipe, grounds: EntryCheckContext, first: SeasonLogEvent
) -> EntryCheckResult:
    findings = []
    if not recipe.licence.strip():
        problem = "clips without a licence may not be shown. Write licence, for example CC BY 4.0"
        findings.append(
            EntryFinding(check="licence", weight=EntryFindingSeverity.REFUSES, words=problem)
        )
    if not recipe.statement.strip():
        problem = "it has no description. Write a statement: what it is, and its training data"
        findings.append(
            EntryFinding(check="statement", weight=EntryFindingSeverity.WARNS, words=problem)
        )
    sha256 = {}
    if recipe.creator is not None:
        _remove_entry_folder(recipe, grounds.folder)
        into = grounds.folder / ENTRIES / format_entry_file_name(recipe.title)
        result = check_creator_entry(recipe.creator, grounds, into=into)
        findings += result.findings
        sha256 = dict(result.sha256)
    elif recipe.reviewer is not None:
        findings += check_reviewer_entry(recipe.reviewer, grounds)
    checked = EntryCheckResult(findings=tuple(findings), sha256=sha256)
    twin = _find_same_entrant(recipe, grounds) or _find_identical_entry(
        _compute_entry_identity(recipe, checked), first, grounds.folder
    )
    if twin:
        problem = f"the same as {twin!a}, which already takes part. Submit something else"
        finding = EntryFinding(check="identity", weight=EntryFindingSeverity.REFUSES, words=problem)
        return EntryCheckResult(findings=(*findings, finding), sha256=sha256)
    return checked


def _compute_entry_identity(recipe: SeasonEntryRecipe, checked: EntryCheckResult) -> str:
    """Return a hash of everything that determines the entry's clips or answers, except its name."""
    if recipe.creator is not None:
        parts = [str(part) for part in _get_creator_identity(recipe.creator)]
    else:
        section = recipe.reviewer
        parts = ["" if section is None else section.model_dump_json(exclude={"title"})]
    clips = [f"{name} {sha256}" for name, sha256 in sorted(checked.sha256.items())]
    return digest("entry", recipe.kind, *parts, *clips)


def _find_same_entrant(recipe: SeasonEntryRecipe, grounds: EntryCheckContext) -> str:
    """Return a season entrant's title with equal settings, except folders; "" if none has them."""
    season, creator, reviewer = grounds.recipe, recipe.creator, recipe.reviewer
    if reviewer is not None:
        settings = reviewer.model_dump_json(exclude={"title"})
        same = (e.shown for e in season.judges if e.model_dump_json(exclude={"title"}) == settings)
        return next(same, "")
    if creator is None or isinstance(creator.keys, FolderCreatorConfig):
        return ""
    return next(
        (
            e.name
            for e in season.creator
            if _get_creator_identity(e) == _get_creator_identity(creator)
        ),
        "",
    )


def _get_creator_identity(section: CreatorRecipeSection) -> tuple[str, str, int]:
    return section.kind, section.keys.identity(), section.seed


def _find_identical_entry(identity: str, first: SeasonLogEvent, folder: Path) -> str:
    """Return the title of another submitted entry with the same identity hash; "" if none has."""
    for event in read_season_log(folder).events:
        same = event.identity == identity and event.kind == first.kind
        if same and event.state in _HEARD and event.entry != first.entry:
            return event.entry
    return ""


def _pin_entry_clips(recipe: SeasonEntryRecipe, folder: Path, identity: str) -> SeasonEntryRecipe:
    """Return the entry's recipe with its folder replaced by the folder of the copied clips.

    Its version gets a hash of the clips, so that the recipe is bound to their content. A recipe
    without a folder of clips is returned unchanged.
    """
    creator = recipe.creator
    if creator is None or not isinstance(creator.keys, FolderCreatorConfig):
        return recipe
    location = {"folder": str((folder / ENTRIES / format_entry_file_name(recipe.title)).absolute())}
    version = creator.keys.version
    pinned = {"version": f"{version}+{identity[:12]}" if version else identity[:12]}
    section = type(creator).model_validate(creator.model_dump() | location | pinned)
    return recipe.model_copy(update={"creator": section})


def _remove_entry_folder(recipe: SeasonEntryRecipe, folder: Path) -> None:
    """Delete the clips that an earlier attempt with the same title copied."""
    OutputDirectory(folder).remove_folder(f"{ENTRIES}/{format_entry_file_name(recipe.title)}")
