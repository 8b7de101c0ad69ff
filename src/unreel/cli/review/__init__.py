"""Commands for single clips: `review`, `probe`, `frames`."""
