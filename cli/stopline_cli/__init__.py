"""The `stopline` command."""
