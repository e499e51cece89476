"""Claims jobs, runs them and reports how each attempt ended."""
