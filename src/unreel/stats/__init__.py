"""Numbers with their doubt, by clip. Imports `core`, numpy and scipy; evalica only when a ranking is asked for."""
