"""`[audit]`: test if file properties reveal the labels; report the leaks, their size and clips."""
