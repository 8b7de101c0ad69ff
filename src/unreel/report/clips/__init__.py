"""The browser of single clips in a report, and the clips next to it."""
