"""Puts a known trace into a clean clip: truth about where, when and why that no annotator can give."""
