"""The error that ends a command with one message and no traceback."""


class CommandError(Exception):
    """A command cannot go on. `thing` is what is wrong, `rule` what must hold, `fix` what to do about it."""

    def __init__(self, thing: str, rule: str, fix: str) -> None:
        super().__init__(f"{thing}: {rule}. Fix: {fix}")
        self.thing = thing
        self.rule = rule
        self.fix = fix
