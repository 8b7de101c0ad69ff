"""Questions with the answers to learn."""
