"""Labels written so that LaTeX, HTML and Typst show them as they are; for Markdown see :func:`.markdown.escape`."""

from __future__ import annotations

import html
import re

__all__ = ["html_text", "latex_text", "typst_string"]

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\ensuremath{|}",
    "`": r"\textasciigrave{}",
    # The signs of this package that pdfLaTeX has in mathematics only.
    "−": r"\ensuremath{-}",
    "×": r"\ensuremath{\times}",
    "∞": r"\ensuremath{\infty}",
    "≤": r"\ensuremath{\le}",
    "≥": r"\ensuremath{\ge}",
    "‖": r"\ensuremath{\|}",
    "α": r"\ensuremath{\alpha}",
    "β": r"\ensuremath{\beta}",
    "γ": r"\ensuremath{\gamma}",
    "δ": r"\ensuremath{\delta}",
    "…": r"\dots{}",
    "\N{NO-BREAK SPACE}": "~",
}


def latex_text(label: str) -> str:
    """Write a label for LaTeX; signs that pdfLaTeX has in mathematics only are set so.

    Examples
    --------
    >>> print(latex_text("a_b&c%"), latex_text("<x>"), latex_text("γ = 2.2"))
    a\\_b\\&c\\% \\textless{}x\\textgreater{} \\ensuremath{\\gamma} = 2.2
    """
    text = re.sub("-(?=-)", "-{}", "".join(_LATEX.get(sign, sign) for sign in _one_line(label)))  # no dash of two
    return text.replace("–", "--")


def html_text(label: str) -> str:
    """Write a label for HTML.

    Examples
    --------
    >>> html_text("<x> & y")
    '&lt;x&gt; &amp; y'
    """
    return html.escape(_one_line(label))


def typst_string(label: str) -> str:
    """Write a label as a string of Typst, in which nothing is markup.

    Examples
    --------
    >>> print(typst_string('a "b" \\\\c'))
    "a \\"b\\" \\\\c"
    """
    text = _one_line(label).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _one_line(label: str) -> str:
    return re.sub(r"[ \t\r\n\f\v]+", " ", label).strip(" ")
