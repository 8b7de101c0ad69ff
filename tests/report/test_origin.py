"""What a file's tags and credentials tell, and what they do not."""

from dataclasses import replace

import pytest

from facts import FACTS
from unreel.core.facts import ClipFacts, Tag
from unreel.report.review.check import Found, marks_not_looked_for
from unreel.report.review.origin import tell_origin
from unreel.report.review.programs import tell_passes, tell_programs
from unreel.report.review.provenance import Manifest, ManifestState, Provenance, tell_credentials

PHONE = (Tag("video handler_name", "Core Media Video"), Tag("location"))
FFMPEG = (Tag("encoder", "Lavf61.7.100"), Tag("video handler_name", "VideoHandler"))
X264 = (Tag("signature", "x264 164"),)
MADE = "c2pa.created (trainedAlgorithmicMedia) by Some generator"


def tagged(*tags: Tag) -> ClipFacts:
    return replace(FACTS, tags=tags)


def test_programs_are_told_by_the_names_that_they_left() -> None:
    told = tell_programs(tagged(*FFMPEG, *X264, Tag("major_brand", "isom")))
    assert told.found is Found.SOMETHING
    assert "\u201cLavf61.7.100\u201d (FFmpeg) in the container" in told.says
    assert "\u201cx264 164\u201d in the picture" in told.says
    assert "isom" not in told.says


def test_a_tag_that_may_be_private_is_named_and_not_shown() -> None:
    assert (
        "also carries location; what these say is not shown" in tell_programs(tagged(*PHONE)).says
    )


@pytest.mark.parametrize(
    ("tags", "found", "told"),
    [
        ((), Found.NOTHING, "proves nothing"),
        (PHONE, Found.NOTHING, "proves nothing"),
        ((*PHONE, *FFMPEG), Found.SOMETHING, "FFmpeg and Apple both left names"),
        (X264, Found.SOMETHING, "x264, an encoder in software"),
    ],
)
def test_signs_of_a_second_pass_are_signs_only(tags, found, told) -> None:
    check = tell_passes(tagged(*tags))
    assert check.found is found
    assert told in check.says
    assert "were not looked for" in check.says
    assert check.claim == ""


@pytest.mark.parametrize(
    ("state", "actions", "claim"),
    [
        (
            ManifestState.VALID,
            (MADE,),
            "Its Content Credentials, signed as Some Lab, say that a trained model made it.",
        ),
        (
            ManifestState.INVALID,
            (MADE,),
            "Its Content Credentials, signed as Some Lab, say that a trained model made it, but they do not hold.",
        ),
        (ManifestState.VALID, ("c2pa.created (digitalCapture)", "c2pa.edited by (x)"), ""),
    ],
)
def test_credentials_that_say_generated_are_the_files_own_claim(state, actions, claim) -> None:
    manifest = Manifest(found="manifest", signer="Some Lab", actions=actions)
    told = tell_credentials(Provenance(state=state, says="It is so.", manifest=manifest))
    assert (told.found, told.claim) == (Found.SOMETHING, claim)


def test_what_was_not_looked_for_is_not_told_as_absent() -> None:
    none = Provenance(state=ManifestState.NOT_LOOKED_FOR, says="Not looked for.")
    origin = tell_origin(FACTS, marks=marks_not_looked_for("no time."), provenance=none)
    assert [check.found for check in origin.checks[:2]] == [Found.NOT_LOOKED, Found.NOT_LOOKED]
    assert origin.claims == ()
