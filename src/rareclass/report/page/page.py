"""A report as one HTML file that asks nothing of anywhere."""

from base64 import b64encode
from functools import cache
from importlib.resources import files
from typing import Any

from rareclass.report.page.choice_view import choice_view
from rareclass.report.page.document import Report


def rendered(report: Report) -> str:
    """The page: HTML with its style, its script and its drawings inside.

    It makes no request, is read without JavaScript, and is the same for the same report. Raises
    `ImportError` without jinja2, which `rareclass[cli]` brings.
    """
    return str(_template().render(report=report, css=_part("page.css"), script=_part("page.js")))


@cache
def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("a report needs jinja2: pip install 'rareclass[cli]'.") from error
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["choice_view"] = choice_view
    environment.filters["base64"] = lambda png: b64encode(png).decode("ascii")
    return environment.from_string(_part("page.html.j2"))


@cache
def _part(name: str) -> str:
    return (files("rareclass.report.page") / name).read_text(encoding="utf-8")
