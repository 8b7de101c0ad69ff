"""An annotator before the real screen: what they see, and what their hands do."""

import io
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from unreel.annotation.campaign import AnnotatorClipCopy
from unreel.core.box import Box
from unreel.media.decode import Rgb

PATIENCE_MS = 90_000
_COUNTER = r"document.body.innerText.match(/(\d+)\s*of\s*(\d+)/)"
_RESTS = "document.querySelector('video').paused && !document.querySelector('video').seeking"
_CLICKS = 5
_LOOKS = 15
SUBMIT = "button[aria-label='Submit current annotation']"


@dataclass
class Annotator:
    """A person at a browser's page, who looks at one clip of a known size."""

    page: Any

    def log_in(self, url: str, login: str, password: str) -> None:
        """Follow a link that asks for a login first."""
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.goto(url)
        self.page.fill("input[name=email]", login)
        self.page.fill("input[name=password]", password)
        self.page.click("button[type=submit]")

    def read_guidelines(self) -> None:
        """Close the page of guidelines that lies over a room's first task."""
        heading = self.page.get_by_text("Labeling Instructions")
        heading.wait_for(state="visible")
        self.press("Escape")
        heading.wait_for(state="hidden")

    def wait_for_clip(self, n_frames: int) -> None:
        """Wait until the clip of that many frames is there and rests on its first one."""
        self.page.wait_for_function(f"({_COUNTER} || [])[2] === '{n_frames}'")
        self.page.wait_for_function("document.querySelector('video').readyState >= 2")
        self.page.wait_for_timeout(500)

    def press(self, keys: str) -> None:
        self.page.keyboard.press(keys)

    def rest(self) -> None:
        """Wait until the picture stands still and is drawn."""
        self.page.wait_for_function(_RESTS)
        before = -1
        while before != (now := self.frame()):
            before = now
            self.page.wait_for_timeout(200)

    def go_to_last(self, n_frames: int) -> None:
        """Press the key for the last frame until the screen is there."""
        for _ in range(_CLICKS):
            self.press("Shift+Control+Alt+ArrowRight")
            for _ in range(_LOOKS):
                self.page.wait_for_timeout(200)
                if self.frame() == n_frames:
                    self.rest()
                    return
        msg = f"the screen stays at frame {self.frame()} of {n_frames}"
        raise AssertionError(msg)

    def play_to(self, frame: int) -> None:
        """Play until about that frame, and pause."""
        self.press("Control+Alt+Space")
        self.page.wait_for_function(f"Number(({_COUNTER} || [])[1]) >= {frame}")
        self.press("Control+Alt+Space")
        self.rest()

    def frame(self) -> int:
        """The number below the picture."""
        found = re.search(r"(\d+)\s*of\s*\d+", self.page.inner_text("body"))
        assert found is not None
        return int(found[1])

    def picture(self, copy: AnnotatorClipCopy) -> Rgb:
        """What is on the screen where the clip is."""
        x, y, width, height = self._area(copy)
        clip = {"x": x, "y": y, "width": width, "height": height}
        shot = Image.open(io.BytesIO(self.page.screenshot(clip=clip)))
        return np.asarray(shot.convert("RGB"))

    def draw(self, box: Box, copy: AnnotatorClipCopy) -> None:
        """Drag from one corner to the other, then click the box."""
        x, y, width, height = self._area(copy)
        mouse = self.page.mouse
        mouse.move(x + box.x0 * width, y + box.y0 * height)
        mouse.down()
        middle = (x + (box.x0 + box.x1) / 2 * width, y + (box.y0 + box.y1) / 2 * height)
        mouse.move(*middle, steps=3)
        mouse.move(x + box.x1 * width, y + box.y1 * height, steps=3)
        mouse.up()
        self._choose(middle)

    def _choose(self, point: tuple[float, float]) -> None:
        """Click a box; on a busy machine it takes its time to be there, and to be chosen."""
        field = self.page.locator("textarea[name=explanation]")
        for _ in range(_CLICKS):
            self.page.wait_for_timeout(1000)
            self.page.mouse.click(*point, delay=50)
            for _ in range(_LOOKS):
                self.page.wait_for_timeout(200)
                if field.is_visible():
                    return
        msg = "the box cannot be chosen"
        raise AssertionError(msg)

    def say(self, text: str, field: str) -> None:
        """Write into a field and leave it."""
        self.page.locator(f"textarea[name={field}]").fill(text)
        self.page.evaluate("document.activeElement.blur()")

    def switch_off(self) -> None:
        """Make the frame the last one on which the chosen box is seen: it has a key frame here."""
        buttons = self.page.locator("button:left-of(button[aria-label='Hop backward'])")
        buttons.first.click()

    def submit(self) -> None:
        """Send it and wait until the server has it."""
        with self.page.expect_response(lambda one: _is_sent(one.request)) as sent:
            self.page.click(SUBMIT)
        assert sent.value.ok, sent.value.status

    def _area(self, copy: AnnotatorClipCopy) -> tuple[float, float, float, float]:
        """Where the clip is on the page: in the middle of its stage, no larger than it is."""
        stage = self.page.locator("canvas").first.bounding_box()
        scale = min(1.0, stage["width"] / copy.width, stage["height"] / copy.height)
        width, height = copy.width * scale, copy.height * scale
        x = stage["x"] + (stage["width"] - width) / 2
        return x, stage["y"] + (stage["height"] - height) / 2, width, height


def _is_sent(request: Any) -> bool:
    return request.method == "POST" and "/annotations" in request.url
