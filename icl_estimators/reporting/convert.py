"""Markdown to a self-contained HTML page and to a tagged PDF, by pandoc and Typst, without a network."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from icl_estimators.files import write_whole
from icl_estimators.reporting.markdown import MARKDOWN
from icl_estimators.validation import InputError

__all__ = ["FORMATS", "REMEDY", "missing_packages", "require_packages", "write_html", "write_pdf"]

FORMATS = ("html", "pdf")
REMEDY = "pip install 'icl-estimators[report]'"

_ASSETS = Path(__file__).resolve().parent / "assets"
_NEEDED = {"html": {"pypandoc": "pypandoc_binary"}, "pdf": {"pypandoc": "pypandoc_binary", "typst": "typst"}}
_NO_GLYPH = "could not be displayed"


def missing_packages(formats: Iterable[str]) -> list[str]:
    """Return the distributions that these formats need and that are not installed."""
    needed = {module: package for name in formats for module, package in _NEEDED[name].items()}
    return [package for module, package in needed.items() if importlib.util.find_spec(module) is None]


def require_packages(formats: Iterable[str]) -> None:
    """Refuse formats that cannot be made here.

    Raises
    ------
    InputError
        If a package is missing; it says how to install it.
    """
    missing = missing_packages(formats)
    if missing:
        raise InputError(f"an HTML or PDF report needs {' and '.join(missing)}: {REMEDY}")


def write_html(
    markdown: Path,
    title: str,
    references: Path | None = None,
    drawings: Mapping[str, str] | None = None,
    style: str = "",
) -> Path:
    """Convert a report beside itself into one HTML file that needs no other file and no network.

    Parameters
    ----------
    markdown : Path
        Figures are found relative to its folder.
    title : str
    references : Path, optional
        CSL JSON; by default the package's own.
    drawings : mapping of str to str, optional
        HTML of figures by stem, put in place of ``figures/STEM.svg``; other images are embedded as they are.
    style : str
        The style sheet of `drawings`.

    Returns
    -------
    Path
    """
    import pypandoc

    path = markdown.with_suffix(".html")
    with tempfile.TemporaryDirectory() as scratch, write_whole(path) as temporary:
        script = Path(scratch) / "after.html"
        code = "".join((_ASSETS / name).read_text(encoding="utf-8") for name in ("sort.js", "figures.js"))
        script.write_text(f"<script>\n{code}</script>\n", encoding="utf-8")
        sheet = Path(scratch) / "style.css"
        sheet.write_text((_ASSETS / "report.css").read_text(encoding="utf-8") + style, encoding="utf-8")
        pypandoc.convert_file(
            str(markdown),
            "html5",
            format=MARKDOWN,
            outputfile=str(temporary),
            extra_args=[
                *_common(markdown, title, references),
                "--mathml",
                "--embed-resources",
                "--toc",
                "--toc-depth=2",
                "--syntax-highlighting=none",
                f"--template={_ASSETS / 'report.html'}",
                f"--include-in-header={sheet}",
                f"--include-after-body={script}",
                *(f"--metadata=inline-{stem}:true" for stem in drawings or {}),
            ],
        )
        page = temporary.read_text(encoding="utf-8")
        for stem, drawing in (drawings or {}).items():
            page = page.replace(f"[[drawing {stem}]]", drawing)
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return path


def write_pdf(markdown: Path, title: str, references: Path | None = None) -> Path:
    """Convert a report beside itself into a PDF that meets PDF/UA-1.

    Letters that the fonts at hand lack are looked for among the machine's; if it lacks them too, the PDF is made
    without the standard's seal, with boxes in their place.

    Parameters
    ----------
    markdown, title, references
        As for :func:`write_html`.

    Returns
    -------
    Path
    """
    import pypandoc
    import typst

    source = pypandoc.convert_file(
        str(markdown),
        "typst",
        format=MARKDOWN,
        extra_args=[
            *_common(markdown, title, references),
            "--syntax-highlighting=none",
            f"--template={_ASSETS / 'report.typ'}",
        ],
    )
    source = source.replace("align(center)[#table(", "align(left)[#table(")  # as in the HTML
    path = markdown.with_suffix(".pdf")
    fonts = [_figure_fonts()]
    for only_ours, tagged in ((True, True), (False, True), (False, False)):
        try:
            pdf = _compile(source, markdown.parent, fonts, only_ours=only_ours, tagged=tagged)
            break
        except typst.TypstError as error:
            if _NO_GLYPH not in str(error) or not tagged:
                raise
    with write_whole(path) as temporary:
        temporary.write_bytes(pdf)
    return path


def _compile(source: str, root: Path, fonts: list[str], *, only_ours: bool, tagged: bool) -> bytes:
    import typst

    with tempfile.NamedTemporaryFile("w", suffix=".typ", dir=root, encoding="utf-8", delete=False) as file:
        file.write(source)
    try:
        pdf, warnings = typst.compile_with_warnings(
            file.name,
            root=str(root),
            format="pdf",
            font_paths=fonts,
            ignore_system_fonts=only_ours,
            pdf_standards="ua-1" if tagged else [],
            timestamp=0,
        )
    finally:
        Path(file.name).unlink()
    if warnings:
        raise RuntimeError(f"Typst warns: {warnings[0].message}")
    return bytes(pdf)


def _figure_fonts() -> str:
    """Return the folder of the fonts that matplotlib ships: DejaVu has the symbols that a book face lacks."""
    import matplotlib as mpl

    return str(Path(mpl.get_data_path()) / "fonts" / "ttf")


def _common(markdown: Path, title: str, references: Path | None) -> list[str]:
    return [
        "--standalone",
        "--columns=1000",  # a longer line would make all columns equally wide
        f"--lua-filter={_ASSETS / 'report.lua'}",
        "--citeproc",
        f"--bibliography={references or _ASSETS / 'references.json'}",
        "--fail-if-warnings",
        f"--resource-path={markdown.parent}",
        f"--metadata=pagetitle={title}",
    ]
