"""The only modules that talk to the database: a session, and one class of function calls per kind of process."""
