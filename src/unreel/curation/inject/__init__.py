"""`[inject]`: a known trace in a clean clip: truth about where, when and why that no annotator can give."""
