"""Contact sheet: frozen and excluded clips as pictures on one page."""
