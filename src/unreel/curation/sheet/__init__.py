"""A contact sheet: what was frozen and what was left out, as pictures on one page."""
