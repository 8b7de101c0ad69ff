"""Python API: one function per command, with the same names."""
