"""Execution and storage of jobs: stages, runners, tables. The only folder that imports Ray and Lance."""
