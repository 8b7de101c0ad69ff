"""TODO protocols."""
