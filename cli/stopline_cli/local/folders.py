"""Where local state lives: outside the checkout and outside HOME, which may be empty, and short enough for a socket."""

import hashlib
import os
from pathlib import Path

from stopline_cli.errors import CommandError

CHECKOUT = Path(__file__).resolve().parents[3]
"""The folder that holds `sql/`, `lambdas/` and `layers/`."""

LASTING = Path("/var/tmp")

STATE_VARIABLE = "STOPLINE_LOCAL_STATE"
"""Names another folder for the local databases than the one that is chosen here. Keep its path short."""


def state_folder(checkout: Path = CHECKOUT) -> Path:
    """The folder of one user and one checkout, made when missing. It outlives a restart of the machine."""
    named = os.environ.get(STATE_VARIABLE)
    if named:
        return _owned(Path(named))
    mark = hashlib.sha256(os.fsencode(checkout)).hexdigest()[:10]
    return _owned(LASTING / f"stopline-{os.geteuid()}-{mark}")


def shared_folder() -> Path:
    """The folder of one user for what all checkouts share, made when missing."""
    return _owned(LASTING / f"stopline-{os.geteuid()}")


def _owned(folder: Path) -> Path:
    """Makes `folder` so that others may pass through but not look in, and refuses one that somebody else prepared."""
    folder.mkdir(mode=0o711, exist_ok=True)
    info = folder.lstat()
    if folder.is_symlink() or info.st_uid != os.geteuid():
        raise CommandError(str(folder), "belongs to another user, and Stopline keeps its state there", "remove it")
    folder.chmod(0o711)
    return folder
