"""Cases from the drop to the bundle, in process."""


def test_a_dropped_clip_becomes_a_case_with_evidence(open_desk, model, clip_bytes) -> None:
    chosen, asked = model
    with open_desk(reviewers=(chosen,)) as desk:
        reply = desk.drop(("street.mp4", clip_bytes(0)))
        assert reply.status_code == 200, reply.text
        (case,) = desk.wait()
        assert case.stage == "done", case.sentence
        page = desk.client.get(f"/cases/{case.id}/").text
        assert "looks AI-generated, from 0.25\u00a0s" in page
        assert len(asked) == 2
