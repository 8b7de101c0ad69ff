"""The settings of `[describe]`."""

from unreel.recipes.section import Connections, Deadline, MaxTokens, Section, Text


class DescribeSection(Section):
    """`[describe]`: a vision model tells the story of each real clip, from 8 frames."""

    model: Text
    """`provider/name` or `provider/name@URL`, as in `unreel eval`."""
    max_tokens: MaxTokens = 1024
    max_connections: Connections = 16
    deadline_s: Deadline = 180.0
