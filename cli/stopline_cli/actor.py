"""Who acts, for the audit."""

import os
import pwd


def local_actor() -> str:
    """The user of this machine, by name where it has one."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
