"""Brings a database to the state that the files in `sql/`, the policies and the sources describe."""
