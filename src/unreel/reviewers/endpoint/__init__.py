"""A model behind an OpenAI-compatible server: its address, its key, its pace, its replies."""
