"""Everything that runs on the developer's own machine: PostgreSQL, functions as processes, and their folders."""
