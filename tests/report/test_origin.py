"""What a file's tags and credentials tell, and what they do not."""

from dataclasses import replace

import pytest

from facts import FACTS
from unreel.core.clip import ClipFacts, FileTag
from unreel.report.review.file_origin import (
    build_file_origin_checks,
    check_for_reencoding,
    check_program_names,
)
from unreel.report.review.provenance import (
    C2paManifest,
    C2paManifestState,
    C2paReadResult,
    FileOriginCheckOutcome,
    build_credentials_check,
    build_skipped_watermark_check,
)

PHONE = (FileTag("video handler_name", "Core Media Video"), FileTag("location"))
FFMPEG = (FileTag("encoder", "Lavf61.7.100"), FileTag("video handler_name", "VideoHandler"))
X264 = (FileTag("signature", "x264 164"),)
MADE = "c2pa.created (trainedAlgorithmicMedia) by Some generator"


def tagged(*tags: FileTag) -> ClipFacts:
    return replace(FACTS, tags=tags)


def test_programs_are_told_by_the_names_that_they_left() -> None:
    told = check_program_names(tagged(*FFMPEG, *X264, FileTag("major_brand", "isom")))
    assert told.found is FileOriginCheckOutcome.SOMETHING
    assert "\u201cLavf61.7.100\u201d (FFmpeg) in the container" in told.says
    assert "\u201cx264 164\u201d in the picture" in told.says
    assert "isom" not in told.says


def test_a_tag_that_may_be_private_is_named_and_not_shown() -> None:
    assert (
        "also carries location; their content is not shown"
        in check_program_names(tagged(*PHONE)).says
    )


@pytest.mark.parametrize(
    ("tags", "found", "told"),
    [
        ((), FileOriginCheckOutcome.NOTHING, "proves nothing"),
        (PHONE, FileOriginCheckOutcome.NOTHING, "proves nothing"),
        ((*PHONE, *FFMPEG), FileOriginCheckOutcome.SOMETHING, "FFmpeg and Apple both wrote names"),
        (X264, FileOriginCheckOutcome.SOMETHING, "x264, a software encoder"),
    ],
)
def test_signs_of_a_second_pass_are_signs_only(tags, found, told) -> None:
    check = check_for_reencoding(tagged(*tags))
    assert check.found is found
    assert told in check.says
    assert "was not checked for traces" in check.says
    assert check.claim == ""


@pytest.mark.parametrize(
    ("state", "actions", "claim"),
    [
        (
            C2paManifestState.VALID,
            (MADE,),
            "Its Content Credentials, signed as Some Lab, say that a trained model made it.",
        ),
        (
            C2paManifestState.INVALID,
            (MADE,),
            "Its Content Credentials, signed as Some Lab, say that a trained model made it, but they are not valid.",
        ),
        (C2paManifestState.VALID, ("c2pa.created (digitalCapture)", "c2pa.edited by (x)"), ""),
    ],
)
def test_credentials_that_say_generated_are_the_files_own_claim(state, actions, claim) -> None:
    manifest = C2paManifest(found="manifest", signer="Some Lab", actions=actions)
    told = build_credentials_check(C2paReadResult(state=state, says="It is so.", manifest=manifest))
    assert (told.found, told.claim) == (FileOriginCheckOutcome.SOMETHING, claim)


def test_what_was_not_looked_for_is_not_told_as_absent() -> None:
    none = C2paReadResult(state=C2paManifestState.NOT_SEARCHED, says="Not looked for.")
    origin = build_file_origin_checks(
        FACTS, watermarks=build_skipped_watermark_check("no time."), provenance=none
    )
    assert [check.found for check in origin.checks[:2]] == [
        FileOriginCheckOutcome.NOT_SEARCHED,
        FileOriginCheckOutcome.NOT_SEARCHED,
    ]
    assert origin.claims == ()
