"""`[split]`: clips become single-theme pieces."""
