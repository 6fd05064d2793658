"""The commands of this package: ``python -m icl_estimators``, or ``icl-estimators COMMAND``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from icl_estimators.options import Parser, command
from icl_estimators.validation import InputError

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "evaluate": "compare estimators on fresh chains or observed sequences, with a report",
    "identify": "which rule an estimator is like, and where it loses against Bayes: one screen",
    "exact": "exact risk at short context lengths, by enumerating every prefix",
    "predict": "what each estimator says comes after one prompt",
    "smoothing": "which pseudo-count each estimator acts like, and by what mechanism",
    "merge": "put the pieces of a study, computed apart, together into one",
    "report": "build the report of a results folder again from its tables",
    "train": "train the transformer on fresh chains",
}
"""What each command is for, in one line."""


@command
def main(argv: Sequence[str] | None = None) -> int:
    """List the commands, or run the one that is named first; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and not arguments[0].startswith("-"):
        name, *rest = arguments
        if name not in COMMANDS:
            raise InputError(f"unknown command {name!r}: choose from {', '.join(COMMANDS)}")
        run = importlib.import_module(f"icl_estimators.{name}").main
        status: int = run(rest)
        return status
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    parser = Parser(
        prog="python -m icl_estimators",
        description="Which estimator is this sequence model? Compare transformers, induction heads and counting rules.",
        usage="python -m icl_estimators.COMMAND [options]",
        epilog=f"commands:\n{listed}\n\nEach command explains its options with --help.",
    )
    parser.parse_args(arguments)
    parser.print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())
