"""The settings of `[describe]`."""

from unreel.recipes.section import Deadline, MaxTokens
from unreel.reviewers.section import ReviewerSection


class DescribeSection(ReviewerSection):
    """`[describe]`: a vision model describes each real clip from 8 frames."""

    max_tokens: MaxTokens = 1024
    """Most tokens of a story."""
    deadline_s: Deadline = 180.0
    """For one question, retries included."""
