"""Checks of a clip file for signs of its origin, made without a model."""

import re
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from unreel.core.clip import Clip, ClipFacts, FileTag
from unreel.core.failure import Failure
from unreel.core.safe_text import sanitise_line
from unreel.media.reader import MediaReader
from unreel.report.review.provenance import (
    C2paReadResult,
    C2paTrustList,
    FileOriginCheck,
    FileOriginCheckOutcome,
    build_credentials_check,
    build_skipped_watermark_check,
    read_c2pa_manifest,
)

_PROGRAMS = (
    ("FFmpeg", re.compile(r"\b(lavf|lavc|ffmpeg)|^(Video|Sound)Handler$", re.IGNORECASE)),
    ("HandBrake", re.compile(r"handbrake", re.IGNORECASE)),
    ("GPAC", re.compile(r"\bgpac\b", re.IGNORECASE)),
    ("L-SMASH", re.compile(r"l-smash", re.IGNORECASE)),
    ("Google", re.compile(r"\bgoogle\b", re.IGNORECASE)),
    ("Apple", re.compile(r"core media|quicktime|\bapple\b", re.IGNORECASE)),
    ("Adobe", re.compile(r"\badobe\b|mainconcept|alias data handler", re.IGNORECASE)),
    ("Twitter", re.compile(r"twitter", re.IGNORECASE)),
)
"""Names of programs, and patterns of them in tags. `VideoHandler` is FFmpeg's default stream name."""
_SIGNATURE = "signature"
_NAMING = frozenset(
    {"encoder", "encoding_tool", "handler_name", "software", "writing_application", "vendor_id"}
)
_MAX_SEEN = 3
"""Maximum number of matching clips that are named."""
_PIXELS = "The picture itself was not checked for traces of compression."


def check_program_names(facts: ClipFacts) -> FileOriginCheck:
    """Check the file's tags for the names of programs that wrote it."""
    names = []
    for tag in facts.tags:
        if not tag.value or _get_tag_kind(tag) not in {*_NAMING, _SIGNATURE}:
            continue
        # The program that writes this tag, unless the tag contains its name.
        owners = [name for name, pattern in _PROGRAMS if pattern.search(tag.value)]
        owner = f" ({owners[0]})" if owners and owners[0].lower() not in tag.value.lower() else ""
        stream = tag.name.rpartition(" ")[0]
        place = {"video": "picture stream", "audio": "sound stream"}.get(stream, "container")
        place = "picture" if tag.name == _SIGNATURE else place
        names.append(f"\u201c{tag.value}\u201d{owner} in the {place}")
    empty_tags = [tag.name for tag in facts.tags if not tag.value]
    text = f"{'; '.join(names)}." if names else "No program names found."
    if empty_tags:
        text += f" The file also carries {', '.join(empty_tags)}; their content is not shown here."
    name = "Programs that wrote the file"
    return FileOriginCheck(
        name=name,
        found=FileOriginCheckOutcome.SOMETHING if names else FileOriginCheckOutcome.NOTHING,
        says=text,
    )


def check_for_reencoding(facts: ClipFacts) -> FileOriginCheck:
    """Check for signs that the file was re-encoded."""
    writers = [
        name
        for name, pattern in _PROGRAMS
        if any(_get_tag_kind(tag) in _NAMING and pattern.search(tag.value) for tag in facts.tags)
    ]
    encoders = [tag.value.partition(" ")[0] for tag in facts.tags if tag.name == _SIGNATURE]
    signs = []
    if len(writers) > 1:
        signs.append(
            f"{' and '.join(writers)} both wrote names: a sign that the file was repackaged or encoded "
            "again by a second program."
        )
    if encoders:
        signs.append(
            f"{encoders[0]}, a software encoder, wrote the picture stream; most phones and cameras use "
            "hardware encoders. A sign that this is not an original camera recording; generators, "
            "editors and sharing sites also use software encoders."
        )
    nothing = "None in the names of programs. Many programs write no name, so this proves nothing."
    return FileOriginCheck(
        name="Signs of re-encoding",
        found=FileOriginCheckOutcome.SOMETHING if signs else FileOriginCheckOutcome.NOTHING,
        says=f"{' '.join(signs) or nothing} {_PIXELS}",
    )


def _get_tag_kind(tag: FileTag) -> str:
    return tag.name.rpartition(" ")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOriginChecks:
    """Results of all checks of a clip file for its origin, and its C2PA manifest."""

    provenance: C2paReadResult
    checks: tuple[FileOriginCheck, ...]

    @property
    def claims(self) -> tuple[str, ...]:
        """Return the sentences in which the file itself states that it was generated."""
        return tuple(check.claim for check in self.checks if check.claim)

    @property
    def hints(self) -> tuple[str, ...]:
        """Return the sentences about texts that only name a generator, which may be words of the scene."""
        return tuple(check.hint for check in self.checks if check.hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOriginSettings:
    """Settings of the checks of a clip file for its origin."""

    drawn: bool = False
    """Whether the clip is a synthetic sample, in which no watermark is searched."""
    seen_index: Path | None = None
    """Index of clips that were seen before, in which the clip is searched."""
    trust_list: C2paTrustList | None = None
    """Authorities whose signers are shown as trusted."""


def check_file_origin(
    clip: Clip, *, reader: MediaReader, without_seccomp: bool, settings: FileOriginSettings
) -> FileOriginChecks:
    """Check a file for signs of its origin, without a model."""
    file = Path(clip.location)
    provenance = read_c2pa_manifest(
        file, without_seccomp=without_seccomp, trust_list=settings.trust_list
    )
    if settings.drawn:
        watermarks = build_skipped_watermark_check("the clip was drawn for this sample.")
    else:
        from unreel.report.review.visible_watermarks import (
            check_visible_watermarks,  # half a second to import
        )

        watermarks = check_visible_watermarks(file, reader)
    found = build_file_origin_checks(clip.facts, watermarks=watermarks, provenance=provenance)
    if settings.seen_index is None:
        return found
    seen = check_seen_before(clip, reader, settings.seen_index)
    return replace(found, checks=(*found.checks, seen))


def check_seen_before(clip: Clip, reader: MediaReader, seen_index: Path) -> FileOriginCheck:
    """Search a clip in an index of clips that were seen before."""
    name = "Seen before"
    if find_spec("pdqhash") is None:
        return FileOriginCheck(
            name=name,
            found=FileOriginCheckOutcome.NOT_SEARCHED,
            says="Not searched: install the extra: pip install 'unreel[review]'",
        )
    from unreel.media.seen_index import SeenIndex

    with SeenIndex(seen_index) as index:
        n_clips = len(index)
        matches = index.find(clip.location, clip.id, reader)
    if isinstance(matches, Failure):
        return FileOriginCheck(
            name=name, found=FileOriginCheckOutcome.NOT_SEARCHED, says=f"Not searched: {matches}"
        )
    if not matches:
        return FileOriginCheck(
            name=name,
            found=FileOriginCheckOutcome.NOTHING,
            says=f"No copy and no part among the {n_clips} clips of your index.",
        )
    n_more = len(matches) - _MAX_SEEN
    says = " ".join(str(match) for match in matches[:_MAX_SEEN])
    says += f" {n_more} more clips match." if n_more > 0 else ""
    return FileOriginCheck(
        name=name, found=FileOriginCheckOutcome.SOMETHING, says=sanitise_line(says)
    )


def build_file_origin_checks(
    facts: ClipFacts, *, watermarks: FileOriginCheck, provenance: C2paReadResult
) -> FileOriginChecks:
    """Combine the results of all checks of a file, the strongest kind of evidence first."""
    checks = (
        watermarks,
        build_credentials_check(provenance),
        check_program_names(facts),
        check_for_reencoding(facts),
    )
    return FileOriginChecks(provenance=provenance, checks=checks)
