"""Clip browser of a report: an index and pages of single clips, and their media files."""
