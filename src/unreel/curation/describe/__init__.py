"""`[describe]`: what real clips are about, told by a model, and whether they are easy or hard."""
