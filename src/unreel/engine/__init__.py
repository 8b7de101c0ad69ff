"""How work runs and lasts: stages, runners, tables. The one folder that knows Ray and Lance."""
