"""Commands of the desk: `desk` and `desk verify`."""
