"""Page at /: a form made from the model's columns, to score one row by hand."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from rareclass.serving.middleware import Limits
from rareclass.serving.served import Served
from rareclass.tables.columns import Column

# Reasons that the page asks for.
_REASONS = 5


def page_of(served: Served, limits: Limits) -> tuple[str, dict[str, str]]:
    """Page as HTML, and the headers that restrict its requests to this service."""
    css, script = _part("page.css"), _part("page.js")
    content = _template().render(
        target=served.target,
        classes=list(served.classes),
        fields=[_field(number, column, served) for number, column in enumerate(served.columns)],
        n_reasons=min(_REASONS, limits.reasons, len(served.columns)),
        css=css,
        script=script,
    )
    policy = (
        f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(script)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return content, {"content-security-policy": policy, "referrer-policy": "no-referrer"}


def _field(number: int, column: Column, served: Served) -> dict[str, Any]:
    """Facts of a column that the form needs."""
    example = served.example[column.name]
    how, hint = "word", "a word"
    if column.reads_as == "number" or column.kind == "number":
        how, hint = "number", "a number"
        example = "" if example is None else f"{example:g}"
    elif column.reads_as == "date":
        how, hint = "date", f"a date written as {_in_words(column.date_format)}"
    elif column.kind == "text":
        how, hint = "text", "text"
    return {
        "id": f"c{number}",
        "name": column.name,
        "how": how,
        "hint": hint,
        "example": example or "",
        "choices": list(served.choices.get(column.name, ())),
    }


def _in_words(date_format: str | None) -> str:
    """Date format in letters, for a person who types a date.

    >>> _in_words("%d.%m.%Y %H:%M"), _in_words(None)
    ('DD.MM.YYYY hh:mm', 'YYYY-MM-DD')
    """
    words = {"%Y": "YYYY", "%m": "MM", "%d": "DD", "%b": "Jan", "%H": "hh", "%M": "mm", "%S": "ss"}
    found = date_format or "%Y-%m-%d"
    for code, word in (words | {"%.f": "", "%z": "+0000"}).items():
        found = found.replace(code, word)
    return found


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_part("page.html.j2"))


@cache
def _part(name: str) -> str:
    return (files("rareclass.serving") / name).read_text(encoding="utf-8")
