"""What people write down of a job: sections of TOML, closed and bounded, read with one wording of errors."""
