"""The `stopline` command: its commands, and how their errors end."""

import sys

import psycopg
import typer

from stopline.errors import StoplineError
from stopline_cli.commands.adopt import adopt
from stopline_cli.commands.demo import demo
from stopline_cli.commands.doctor import doctor
from stopline_cli.commands.exposure import exposure
from stopline_cli.commands.jobs import jobs
from stopline_cli.commands.kinds import kinds
from stopline_cli.commands.local import local
from stopline_cli.commands.migrate import migrate
from stopline_cli.commands.operate import ack, cancel, reconcile, release_key, replay
from stopline_cli.commands.pause import pause, resume
from stopline_cli.commands.reasons import reasons
from stopline_cli.commands.show import show
from stopline_cli.errors import CommandError
from stopline_cli.output import print_error

LOOK = (kinds, jobs, show, reasons, exposure)
ACT = (cancel, replay, reconcile, ack, release_key, pause, resume)
COMMANDS = (demo, *LOOK, *ACT, migrate, doctor, adopt, local)

app = typer.Typer(
    name="stopline",
    help="Background jobs with a stop line. Works on the local database.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in COMMANDS:
    app.command()(command)


def main() -> None:
    """Runs one command. What went wrong is one message on standard error and exit status 1, never a traceback."""
    try:
        app(prog_name="stopline")
    except (CommandError, StoplineError) as error:
        print_error(str(error))
    except psycopg.Error as error:
        print_error(f"the database refused: {str(error).strip()}. Fix: `stopline migrate` brings it up to date")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has seen enough. Nothing is left to be flushed at exit.
        sys.stdout = None
        sys.exit(0)
    else:
        return
    sys.exit(1)
