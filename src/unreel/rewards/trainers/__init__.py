"""Routers for the request formats of trainers; `unreel.rewards.service.settings` names them."""
