"""`[describe]`: descriptions of real clips by a model, and their difficulty."""
