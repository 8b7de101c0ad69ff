"""Parser of answers of the protocol `locate`."""

from unreel.core.errors import InvalidValueError
from unreel.core.verdict import LocateVerdict, Unparsed
from unreel.protocols.answer_text import choose_first_parsed_result, strip_thinking
from unreel.protocols.locate.json_parser import Segments, parse_json_segments
from unreel.protocols.locate.prompts import TAGGED_PROMPTS
from unreel.protocols.locate.tagged_parser import parse_tagged_segments
from unreel.protocols.protocol import AnswerContext, Mode


def parse_locate_answer(text: str, reading: AnswerContext) -> LocateVerdict:
    """Parse the segments in an answer: JSON or tags, as `reading.prompt` requests.

    `lenient` accepts either format. Times are seconds from the start of the clip. A segment that ends
    before it starts, a number too large for any clip and a box without area are out of range; NaN and
    infinity are not numbers. Boxes are in `reading.space` and are clipped to the frame.

    Raises:
        InvalidValueError: `reading.space` is missing.
    """
    space = reading.space
    if space is None:
        msg = "the boxes of a segment need their space. Declare it: AnswerContext(space=parse_box_space(...))"
        raise InvalidValueError(msg)
    body = strip_thinking(text)

    def read(form: str, mode: Mode) -> Segments | Unparsed:
        return (
            parse_tagged_segments(text, mode, space)
            if form == "tagged"
            else parse_json_segments(body, mode, space)
        )

    forms = ["tagged", "json"] if reading.prompt in TAGGED_PROMPTS else ["json", "tagged"]
    attempts = [read(forms[0], "strict")]
    if reading.mode == "lenient":
        attempts += [read(form, "lenient") for form in forms]
    return LocateVerdict(segments=choose_first_parsed_result(attempts))
