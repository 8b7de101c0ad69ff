"""Tags of a file: who wrote it is told, what people wrote into it is not."""

import io

import av

from synthesise import ClipRecipe, synthesise
from unreel.media.probe import probe_clip


def _tagged(**tags: str) -> io.BytesIO:
    out = io.BytesIO()
    with (
        av.open(io.BytesIO(synthesise(ClipRecipe(n_frames=4)))) as source,
        av.open(out, "w", format="matroska") as copy,
    ):
        copy.metadata.update(tags)
        stream = copy.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                copy.mux(packet)
    return out


def _signed() -> io.BytesIO:
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as output:
        stream = output.add_stream("libx264", rate=24)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for _ in range(2):
            output.mux(stream.encode(av.VideoFrame(64, 64, "yuv420p")))
        output.mux(stream.encode(None))
    return out


def test_a_program_is_named_and_a_personal_word_is_not() -> None:
    tags = {tag.name: tag.value for tag in probe_clip(_tagged(comment="a secret prompt")).tags}
    assert tags["comment"] == ""
    assert tags["encoder"].startswith("Lavf")


def test_tags_are_short_and_printable() -> None:
    tags = {tag.name: tag.value for tag in probe_clip(_tagged(software="ü\n|" + "x" * 500)).tags}
    assert len(tags["software"]) == 120
    assert tags["software"].isascii()
    assert tags["software"].isprintable()


def test_the_encoders_signature_is_read_off_the_first_picture() -> None:
    signatures = [tag.value for tag in probe_clip(_signed()).tags if tag.name == "signature"]
    assert len(signatures) == 1
    assert signatures[0].startswith("x264 ")
