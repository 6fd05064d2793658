"""Text, figures and reports, made of the tables of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_estimators.lazy import on_use

if TYPE_CHECKING:
    from icl_estimators.reporting.build import SECTIONS, build_report, listed, remove_report, report_page, write_report
    from icl_estimators.reporting.convert import missing_packages, require_packages, write_html, write_pdf
    from icl_estimators.reporting.results import Results, read_results, read_table

__all__ = [
    "Results",
    "SECTIONS",
    "build_report",
    "listed",
    "missing_packages",
    "read_results",
    "read_table",
    "remove_report",
    "report_page",
    "require_packages",
    "write_html",
    "write_pdf",
    "write_report",
]

_HOMES = {
    "Results": "icl_estimators.reporting.results",
    "SECTIONS": "icl_estimators.reporting.build",
    "build_report": "icl_estimators.reporting.build",
    "listed": "icl_estimators.reporting.build",
    "missing_packages": "icl_estimators.reporting.convert",
    "read_results": "icl_estimators.reporting.results",
    "read_table": "icl_estimators.reporting.results",
    "remove_report": "icl_estimators.reporting.build",
    "report_page": "icl_estimators.reporting.build",
    "require_packages": "icl_estimators.reporting.convert",
    "write_html": "icl_estimators.reporting.convert",
    "write_pdf": "icl_estimators.reporting.convert",
    "write_report": "icl_estimators.reporting.build",
}
__getattr__, __dir__ = on_use(__name__, _HOMES)
