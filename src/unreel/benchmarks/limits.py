"""Size limits for untrusted tables and directories.

The setting `UNREEL_TABLE_ROWS` limits the rows of a table and the files of a directory.
"""

from typing import Final

ROW_BYTES: Final = 4 << 20
"""One row of a CSV or JSONL file with all its lines."""
COLUMNS: Final = 10_000
DOCUMENT_BYTES: Final = 64 << 20
"""A table that is one JSON document: `all_data.json` of DeepTraceReward has 7,652 rows of about 1 kB."""
NESTED_VALUES: Final = 100_000
"""Values in one nested cell: a trace has one box for each frame at most."""
FOLDER_DEPTH: Final = 32
"""Folders inside folders."""

PARQUET_FOOTER_BYTES: Final = 16 << 20
PARQUET_PARTS: Final = 10_000
"""Columns or row groups."""
PARQUET_PAGES: Final = 200_000
PARQUET_PAGE_BYTES: Final = 16 << 20
"""One page unpacked; writers aim at one MiB."""
PARQUET_BATCH_BYTES: Final = 64 << 20
"""What one step of reading may come to, all columns together."""
PARQUET_NESTED_VALUES: Final = 2_000_000
"""Values in the nested columns of one row group."""
