"""Guards against reward hacking: alarms computed from the log of a reward service."""
