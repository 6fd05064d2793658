"""The report of a study, built again from its tables alone: ``python -m icl_estimators.report DIR``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from icl_estimators.options import Parser, command

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.report",
        description="Build the report of a study from the tables in its folder: report.md and figures/, and from "
        "these report.html\nand report.pdf. The same tables give the same bytes with the same versions.",
        epilog="example: python -m icl_estimators.report icl-results",
    )
    parser.add_argument(
        "folder", type=Path, metavar="DIR", help="the output folder of evaluate, smoothing, identify or exact"
    )
    parser.add_argument("--html", action="store_true", help="make the HTML page (default: both)")
    parser.add_argument("--pdf", action="store_true", help="make the PDF (default: both)")
    return parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Build the report and print what was written; return the exit status."""
    options = _parser().parse_args(argv)
    from icl_estimators.python_commands import write_report
    from icl_estimators.reporting.build import listed
    from icl_estimators.reporting.convert import FORMATS

    wanted = tuple(name for name in FORMATS if getattr(options, name)) or FORMATS
    paths = write_report(options.folder, wanted)
    for line in listed(paths):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
