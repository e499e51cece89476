"""Who acts, for the audit."""

import os
import pwd
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Actor:
    """Whose name the audit takes, and whether somebody gave it or it is the operating system's."""

    name: str
    given: bool

    @property
    def line(self) -> str:
        """Said before anything is done: a name that was not given is never taken in silence."""
        return (
            f"Acting as {self.name}{'' if self.given else ' (this machine knows you so; --actor gives another name)'}."
        )


def acting(given: str | None) -> Actor:
    """The actor that a command was given, or the user of this machine."""
    return Actor(local_actor(), False) if given is None else Actor(given, True)


def local_actor() -> str:
    """The user of this machine, by name where it has one."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
