"""Descriptions of the service by the model that answers: OpenAPI, and the page at /, a form."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from rareclass.serving.live_model import ServedModel
from rareclass.serving.middleware import Limits
from rareclass.serving.request_rows import JSON
from rareclass.tables.columns import Column

# Reasons that the page asks for.
_REASONS = 5
_NUMBER = {"type": "number"}
_ERRORS = {
    "400": "The body cannot be read: it is no JSON.",
    "401": "No token, or not the right one.",
    "408": "The body came too slowly.",
    "413": "Too many bytes or rows.",
    "415": "The body is of an unsupported media type.",
    "422": "Rows do not have the model's columns; row and column are named.",
    "500": "The service failed; its log tells where.",
    "503": "Too many requests at once; Retry-After says when to try again.",
    "504": "The answer took too long.",
}


def _object(properties: dict[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    names = list(properties if required is None else required)
    return {"type": "object", "properties": properties, "required": names}


_FAULT = _object(
    {
        "row": {"type": ["integer", "null"], "description": "In this request, from 1."},
        "column": {"type": ["string", "null"]},
        "message": {"type": "string"},
        "remedy": {"type": "string"},
    }
)


def openapi_of(
    served: ServedModel, version: str, limits: Limits, has_token: bool
) -> dict[str, Any]:
    """OpenAPI 3.1 description of the service."""
    cells = {column.name: _cell(column, served) for column in served.columns}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": f"Scores for {served.target}",
            "version": version,
            "description": "Made by rareclass: how much a row is like the rare class.",
        },
        "paths": {
            "/score": {"post": _score(served, limits)},
            "/model": {"get": _get("Facts of the model that answers.", JSON)},
            "/metrics": {"get": _get("Measures, for Prometheus.", "text/plain")},
            "/healthz": {"get": _get("Whether the service is alive.", JSON)},
            "/readyz": {"get": _get("Whether it has a model and takes requests.", JSON, "503")},
        },
        "components": {
            "schemas": {
                "Row": {
                    **_object(cells),
                    "description": "Every column; null where a value is not known. Other names are "
                    "not looked at.",
                    "examples": [dict(served.example)],
                },
                "Columns": {
                    **_object(
                        {
                            name: {"type": "array", "minItems": 1, "items": cell}
                            for name, cell in cells.items()
                        }
                    ),
                    "description": "A list for each column, all of one length.",
                },
                "Scores": _scores(served),
                "Errors": _object({"errors": {"type": "array", "items": _FAULT, "minItems": 1}}),
            }
        },
    }
    if has_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        for path in ("/healthz", "/readyz"):
            document["paths"][path]["get"]["security"] = []
    return document


def _score(served: ServedModel, limits: Limits) -> dict[str, Any]:
    row = {"$ref": "#/components/schemas/Row"}
    rows = {"type": "array", "items": row, "minItems": 1, "maxItems": limits.rows}
    by_column = {name: [cell] for name, cell in served.example.items()}
    return {
        "operationId": "score",
        "summary": "Score rows.",
        "description": f"Up to {limits.rows:,} rows and {limits.body_bytes:,} bytes at a time; "
        f"with reasons {limits.explained_rows:,} rows.",
        "parameters": [
            {
                "name": "reasons",
                "in": "query",
                "description": "So many columns that raise each row's score, the strongest first.",
                "schema": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": limits.reasons,
                    "default": 0,
                },
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {
                    "schema": {
                        "oneOf": [
                            rows,
                            _object({"rows": rows}),
                            _object({"columns": {"$ref": "#/components/schemas/Columns"}}),
                        ]
                    },
                    "examples": {
                        "rows": {"summary": "A list of rows", "value": [dict(served.example)]},
                        "columns": {"summary": "Lists of cells", "value": {"columns": by_column}},
                    },
                },
            },
        },
        "responses": {
            "200": {
                "description": "A row of scores for each row, in its order.",
                "content": {
                    JSON: {"schema": {"$ref": "#/components/schemas/Scores"}},
                },
            },
            **{status: _error(cause) for status, cause in _ERRORS.items()},
        },
    }


def _get(summary: str, media_type: str, *errors: str) -> dict[str, Any]:
    content: dict[str, Any] = {media_type: {}}
    answers = {"200": {"description": summary, "content": content}}
    codes = ("401", "500", *errors)
    return {"summary": summary, "responses": answers | {c: _error(_ERRORS[c]) for c in codes}}


def _error(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Errors"}
    return {"description": description, "content": {JSON: {"schema": schema}}}


def _cell(column: Column, served: ServedModel) -> dict[str, Any]:
    choices = ", ".join(served.choices.get(column.name, ())[:8])
    known = f" Known words: {choices}." if choices else ""
    schema: dict[str, Any] = {"examples": [served.example[column.name]]}
    if column.reads_as == "number" or column.kind == "number":
        largest = 3e38
        schema |= {"type": ["number", "null"], "minimum": -largest, "maximum": largest}
        return schema | {"description": "A number."}
    if column.reads_as == "date":
        how = column.date_format or "%Y-%m-%d or ISO 8601"
        return schema | {"type": ["string", "null"], "description": f"A date written as {how}."}
    schema["type"] = ["string", "number", "boolean", "null"]
    return schema | {"description": f"A word ({column.kind}).{known}"}


def _scores(served: ServedModel) -> dict[str, Any]:
    reason = _object(
        {
            "column": {"type": "string"},
            "value": {"type": ["string", "null"]},
            "effect": {**_NUMBER, "description": "By how much the cell raises the score."},
        }
    )
    row = {
        "score": {**_NUMBER, "description": "The higher, the more like the rare class."},
        "probability": {
            **_NUMBER,
            "description": "Of the rare class, where the model has probabilities; of levels there "
            "is probability_LEVEL for each, of several rare classes probability_CLASS as well.",
        },
        "sure": {
            **_NUMBER,
            "description": "Of a hunt: share of cases to be expected among its rows as sure.",
        },
        "decision": {
            "type": "string",
            "enum": [*dict.fromkeys([*served.classes, *served.rare_classes])],
            "description": "The class by the model's threshold; of several rare classes by those "
            "of the classes.",
        },
        "likely_class": {
            "type": "string",
            "description": "Of several rare classes the most probable one, for every row.",
        },
        "called_class": {
            "type": ["string", "null"],
            "description": "Of several rare classes the one above its own threshold.",
        },
        "called_rare": {"type": "boolean", "description": "Where there is one rare class."},
        "percentile": {
            **_NUMBER,
            "description": "Percent of the training's majority that scores less.",
        },
        "reasons": {
            "type": "array",
            "items": reason,
            "description": "Only with the parameter reasons.",
        },
    }
    scored = _object(row, ("score", "decision", "percentile"))
    model = {"type": "string", "description": "Which model answered."}
    return _object({"model": model, "rows": {"type": "array", "items": scored}})


def page_of(served: ServedModel, limits: Limits) -> tuple[str, dict[str, str]]:
    """Page as HTML, and the headers that restrict its requests to this service."""
    return page_with_headers(
        "page",
        target=served.target,
        classes=list(served.classes),
        fields=[_field(number, column, served) for number, column in enumerate(served.columns)],
        n_reasons=min(_REASONS, limits.reasons, len(served.columns)),
    )


def page_with_headers(name: str, **facts: Any) -> tuple[str, dict[str, str]]:
    """Return a page of this folder with its script, and headers that keep it to its own host."""
    css, script = _part("page.css"), _part(f"{name}.js")
    content = _template(f"{name}.html.j2").render(css=css, script=script, **facts)
    policy = (
        f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(script)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return content, {"content-security-policy": policy, "referrer-policy": "no-referrer"}


def _field(number: int, column: Column, served: ServedModel) -> dict[str, Any]:
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
    words = {"%Y": "YYYY", "%y": "YY", "%m": "MM", "%d": "DD", "%B": "Jan", "%z": "+00:00"}
    words |= {"%H": "hh", "%I": "hh", "%M": "mm", "%S": "ss", "%p": "AM"}
    found = date_format or "%Y-%m-%d"
    for code, word in words.items():
        found = found.replace(code, word)
    return found


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


@cache
def _template(name: str) -> Any:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_part(name))


@cache
def _part(name: str) -> str:
    return (files("rareclass.serving") / name).read_text(encoding="utf-8")
