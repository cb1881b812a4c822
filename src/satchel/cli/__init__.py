"""The command line. Commands are imported when they run; data goes to stdout, words for people to stderr."""

import sys


def main() -> None:
    """Entry point of the ``satchel`` program; never returns. Says what to install when the extra ``cli`` is absent."""
    # Everything else is imported in here: an interrupt while that goes on is an interrupt too, not a traceback.
    try:
        _main()
    except KeyboardInterrupt:
        sys.exit(130)


def _main() -> None:
    from satchel.cli.console import missing_package, print_error, wants_json
    from satchel.cli.streams import prepare

    prepare()
    try:
        from satchel.cli.app import main as run_program
    except ModuleNotFoundError as error:
        print_error(missing_package(error), wants_json=wants_json(sys.argv[1:]))
        sys.exit(2)
    run_program()


__all__ = ["main"]
