"""`[crop]`: detection and removal of uniform borders."""
