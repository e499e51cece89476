"""Exceptions: three that a handler raises to say how an attempt ended, and those that Stopline raises itself.

The three handler exceptions are not `StoplineError`s: they are words of the handler, not faults of Stopline.
"""


class Transient(Exception):
    """The attempt failed and a later one may succeed. `retry_after` is what the receiver asked for, in seconds."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Permanent(Exception):
    """The work itself is invalid: no further attempt can succeed, so none is made."""


class Uncertain(Exception):
    """The effect may or may not have happened. The job is never resent; the receiver or a person is asked."""


class StoplineError(Exception):
    """Base of every error that Stopline raises about its own use."""


class InvalidInput(StoplineError, ValueError):
    """A value breaks a rule. `field` is where it stands, `rule` is what it must satisfy."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


class PolicyError(StoplineError):
    """A policy file breaks a rule. Names the file, the key and the rule."""

    def __init__(self, file: str, key: str, rule: str) -> None:
        super().__init__(f"{file}: {key}: {rule}")
        self.file = file
        self.key = key
        self.rule = rule


class Refused(StoplineError):
    """The database refused an action that its rules do not allow. Names the job or kind, the rule and the fix."""


class InfrastructureError(StoplineError):
    """The database could not be reached or could not serve the call. Never recorded as a job's failure."""


class LeaseLost(StoplineError):
    """This attempt no longer holds the job: its lease ended, or a newer attempt was claimed. Stop at once."""
