"""`[audit]`: test whether file properties reveal the labels, and report the leaks and their clips."""
