"""Routers for the request formats of trainers; `unreel.rewards.dialects` has their names."""
