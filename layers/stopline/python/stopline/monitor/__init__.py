"""Turns what the database says of itself into metrics."""
