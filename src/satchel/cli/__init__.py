"""The command line. Commands are imported when they run; data goes to stdout, words for people to stderr."""

import sys

from satchel.cli.console import missing_package, print_error


def main() -> None:
    """Entry point of the ``satchel`` program; never returns. Says what to install when the extra ``cli`` is absent."""
    try:
        from satchel.cli.app import main as run_program
    except ModuleNotFoundError as error:
        print_error(missing_package(error), wants_json="--json" in sys.argv)
        sys.exit(2)
    run_program()


__all__ = ["main"]
