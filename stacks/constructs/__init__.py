"""Parts of the stacks."""
