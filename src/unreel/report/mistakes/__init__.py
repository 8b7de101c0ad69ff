"""A page for each reviewer: its figures, and its worst mistakes first."""
