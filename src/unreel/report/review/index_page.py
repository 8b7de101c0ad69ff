"""Index page of several reviewed clips; clips that need attention come first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from unreel.core.failure import Failure
from unreel.core.output_files import OutputDirectory
from unreel.core.safe_text import sanitise_line
from unreel.evaluation.review import Review
from unreel.media.messages import INCOMPLETE
from unreel.media.picture import decode_jpeg, encode_jpeg, scale_down_picture
from unreel.pages.html_page import build_html_page, render_template
from unreel.pages.playable_clip import build_data_uri
from unreel.report.review.browser_pdf import PDF
from unreel.report.review.evidence_page import PAGE
from unreel.report.review.file_origin import FileOriginChecks
from unreel.report.review.opinion_text import NO_PROOF
from unreel.report.review.review_result import Attention, classify_attention, format_review_headline

INDEX = "index.html"
ATTENTION_TITLES: dict[Attention, str] = {
    "incomplete": "The file is incomplete",
    "disagreement": "Verdicts disagree",
    "failure": "A verdict is missing",
    "generated": "Looks AI-generated",
    "named": "A text may name a generator",
    "none": "The rest",
}
"""Titles of the groups, in the order of the page."""
_THUMB = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewIndexPageClip:
    """Reviewed clip as the index page shows it."""

    file: Path
    attention: Attention
    sentence: str
    claims: tuple[str, ...] = ()
    """Sentences about marks or data in the file that call it generated, or that name a generator."""
    folder: str = ""
    """Path of the evidence folder, relative to the index; "" if none was written."""
    has_pdf: bool = False
    thumb: bytes = b""
    """JPEG thumbnail of the clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewIndexPageNotes:
    """Information about a review of several clips for its index page: date, counts and note."""

    made_at: datetime
    n_skipped_links: int = 0
    n_left: int = 0
    """Number of clips that were not reviewed because the command was stopped."""
    note: str = ""


def build_index_page_clip(
    review: Review, origin: FileOriginChecks, *, folder: str, has_pdf: bool
) -> ReviewIndexPageClip:
    """Return a reviewed clip for the index page; `folder` is the path of its evidence from there."""
    inputs = [opinion.clip_input for opinion in review.opinions if opinion.clip_input]
    frames = [frame for clip_input in inputs for frame in clip_input.frames]
    thumb = b""
    if frames:
        picture = scale_down_picture(decode_jpeg(frames[len(frames) // 2].jpeg), _THUMB)
        thumb = encode_jpeg(picture, quality=72)
    return ReviewIndexPageClip(
        file=Path(review.clip.location),
        attention=classify_attention(review, origin),
        sentence=format_review_headline(review),
        claims=(*origin.claims, *origin.hints),
        folder=folder,
        has_pdf=has_pdf,
        thumb=thumb,
    )


def build_failed_index_page_clip(file: Path, failure: Failure) -> ReviewIndexPageClip:
    """Return a clip that could not be reviewed, for the index page."""
    sentence = f"Not reviewed: {failure.detail}. {failure.reason.remedy}"
    attention: Attention = "incomplete" if INCOMPLETE in failure.detail else "failure"
    return ReviewIndexPageClip(file=file, attention=attention, sentence=sentence)


def format_attention_count(entries: Sequence[ReviewIndexPageClip]) -> str:
    """Return one sentence with the number of clips that a person should look at first."""
    n, total = sum(entry.attention != "none" for entry in entries), len(entries)
    clips = "1 clip" if total == 1 else f"{total} clips"
    if not n:
        return (
            f"None of {clips} needs attention: every reviewer answered, none says that a clip looks "
            "AI-generated, and no verdicts disagree."
        )
    return f"{n} of {clips} {'needs' if n == 1 else 'need'} attention first."


def write_review_index_page(
    clips: Sequence[ReviewIndexPageClip], out: Path, notes: ReviewIndexPageNotes
) -> Path:
    """Write the index page of the reviewed clips `clips` into the folder `out`."""
    files = [entry.file for entry in clips]
    names = [file.name for file in files]
    names = [
        sanitise_line(str(file) if names.count(name) > 1 else name)
        for file, name in zip(files, names, strict=True)
    ]
    rows = [
        {
            "name": name,
            "page": quote(f"{entry.folder}/{PAGE}") if entry.folder else "",
            "pdf": quote(f"{entry.folder}/{PDF}") if entry.has_pdf else "",
            "sentence": entry.sentence,
            "claims": entry.claims,
            "attention": entry.attention,
            "thumb": build_data_uri(entry.thumb, "image/jpeg") if entry.thumb else "",
        }
        for name, entry in zip(names, clips, strict=True)
    ]
    groups = [
        (title, group)
        for attention, title in ATTENTION_TITLES.items()
        if (group := [row for row in rows if row["attention"] == attention])
    ]
    body = render_template(
        "unreel.report.review:index.html",
        sentence=format_attention_count(clips),
        groups=groups,
        notes=notes,
        no_proof=NO_PROOF,
        version=version("unreel"),
    )
    html = build_html_page(
        title="Reviewed clips",
        body=body,
        styles=["unreel.report.review:evidence.css", "unreel.report.review:index.css"],
        scripts=[],
        data={},
    )
    return OutputDirectory(out, published=True).write(INDEX, html.encode())
