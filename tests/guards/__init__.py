"""Mutation tests of the SQL: each guard is removed in a scratch copy, and at least one test must then fail."""
