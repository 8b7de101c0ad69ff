"""Commands that evaluate models and read runs: `eval`, `score`, `compare`, `report`, `runs`, `export`."""
