"""OpenAPI description of the service, from the columns of the model that answers."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field, create_model

from rareclass.serving import Limits
from rareclass.serving.live_model import ServedModel
from rareclass.serving.requests import JSON, Fault
from rareclass.tables.columns import Column

# Paths that are read, and what they tell.
READ_PATHS = {
    "/model": "Facts of the model that answers.",
    "/openapi.json": "This description.",
    "/metrics": "Measures, for Prometheus.",
    "/healthz": "Whether the service is alive.",
    "/readyz": "Whether it has a model and takes requests.",
}
# Orchestrators that start and stop the service ask for these, and have no token.
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
# Largest number of a cell, just below that of 32 bits.
_LARGEST = 3e38
_ERRORS = {
    400: "The body cannot be read: it is no JSON.",
    401: "No token, or not the right one.",
    408: "The body came too slowly.",
    413: "Too many bytes or rows.",
    415: "The body is of an unsupported media type.",
    422: "Rows do not have the model's columns; row and column are named.",
    500: "The service failed; its log tells where.",
    503: "Too many requests at once; Retry-After says when to try again.",
    504: "The answer took too long.",
}


class Errors(BaseModel):
    """Answer to a request that is refused."""

    errors: list[Fault] = Field(min_length=1)


class ScoreReason(BaseModel):
    """Column that raises the score of a row."""

    column: str
    value: str | None
    effect: float = Field(description="By how much the cell raises the score.")


class Score(BaseModel):
    """Scores of a row; which of them a model has depends on its kind."""

    score: float = Field(description="The higher, the more like the rare class.")
    probability: float | None = Field(
        None,
        description="Of the rare class, where the model has probabilities; of levels there is "
        "probability_LEVEL for each, of several rare classes probability_CLASS as well.",
    )
    sure: float | None = Field(
        None, description="Of a hunt: share of cases among its rows as sure, at most unless known."
    )
    likely_class: str | None = Field(
        None, description="Of several rare classes the most probable one, for every row."
    )
    called_class: str | None = Field(
        None, description="Of several rare classes the one above its own threshold."
    )
    called_rare: bool | None = Field(None, description="Where there is one rare class.")
    percentile: float = Field(description="Percent of the training's majority that scores less.")
    unlike_training: list[str] = Field(description="Columns with values unlike all of training.")
    reasons: list[ScoreReason] | None = Field(None, description="Only with the parameter reasons.")


def openapi_of(
    served: ServedModel, version: str, limits: Limits, has_token: bool
) -> dict[str, Any]:
    """Describe the service by OpenAPI 3.1."""
    router = APIRouter()
    _describe_score(router, served, limits)
    for path, summary in READ_PATHS.items():
        is_open = path in OPEN_PATHS
        media_type = "text/plain" if path == "/metrics" else JSON
        router.add_api_route(
            path,
            lambda: None,
            name=path.strip("/"),
            summary=summary,
            response_class=Response,
            responses={200: {"content": {media_type: {}}}, **_errors(500, 503 if is_open else 401)},
            openapi_extra={"security": []} if has_token and is_open else None,
        )
    document = get_openapi(
        title=f"Scores for {served.target}",
        version=version,
        description="Made by rareclass: how much a row is like the rare class.",
        routes=router.routes,
        separate_input_output_schemas=False,
    )
    body = document["paths"]["/score"]["post"]["requestBody"]["content"][JSON]["schema"]
    body["oneOf"] = body.pop("anyOf")  # "rows" and "columns" together are refused
    if has_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _describe_score(router: APIRouter, served: ServedModel, limits: Limits) -> None:
    """Add the path that scores rows, with the model's own columns."""
    example = dict(served.example)
    cells = {column.name: _cell(column, served) for column in served.columns}
    row = _table("Row", cells, "Every column; null where a value is not known.", example)
    lists = {name: Annotated[list[cell], Field(min_length=1)] for name, cell in cells.items()}  # type: ignore[valid-type]
    columns = {name: [cell] for name, cell in example.items()}
    by_column = _table("Columns", lists, "A list for each column, all of one length.", columns)
    rows = Annotated[list[row], Field(min_length=1, max_length=limits.max_rows)]  # type: ignore[valid-type]
    forms = rows | create_model("RowList", rows=rows) | create_model("Lists", columns=by_column)
    examples = {
        "rows": {"summary": "A list of rows", "value": [example]},
        "columns": {"summary": "Lists of cells", "value": {"columns": columns}},
    }
    decisions = Literal[*served.classes, *served.rare_classes]  # type: ignore[valid-type]
    meaning = "The class by the model's threshold; of several rare classes by those of the classes."
    score = create_model(
        "RowScore", __base__=Score, decision=(decisions, Field(description=meaning))
    )

    def endpoint(
        body: Annotated[forms, Body(openapi_examples=examples)],  # type: ignore[valid-type]
        reasons: Annotated[
            int,
            Query(
                ge=0,
                le=limits.reasons,
                description="So many columns that raise each row's score, the strongest first.",
            ),
        ] = 0,
    ) -> None: ...

    router.add_api_route(
        "/score",
        endpoint,
        methods=["POST"],
        operation_id="score",
        summary="Score rows.",
        description=f"Up to {limits.max_rows:,} rows and {limits.max_body:,} bytes at a time; "
        f"with reasons {limits.explained_rows:,} rows.",
        response_model=create_model(
            "Scores",
            model=(str, Field(description="Which model answered.")),
            rows=(list[score], Field(description="One for each row, in its order.")),  # type: ignore[valid-type]
        ),
        responses=_errors(*_ERRORS),
    )


def _table(name: str, types: dict[str, Any], meaning: str, example: dict[str, Any]) -> Any:
    """Make a model whose fields have the names of columns, which may be any text."""
    fields: dict[str, Any] = {
        f"column_{k}": (each, Field(alias=column)) for k, (column, each) in enumerate(types.items())
    }
    settings: Any = {"json_schema_extra": {"examples": [example]}}
    return create_model(name, __config__=settings, __doc__=meaning, **fields)


def _cell(column: Column, served: ServedModel) -> Any:
    """Return the type of a column's cells."""
    examples = [served.example[column.name]]
    if column.reads_as == "number" or column.kind == "number":
        number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)]
        return Annotated[number | None, Field(description="A number.", examples=examples)]
    if column.reads_as == "date":
        how = f"A date written as {column.date_format or '%Y-%m-%d or ISO 8601'}."
        return Annotated[str | None, Field(description=how, examples=examples)]
    choices = ", ".join(served.choices.get(column.name, ()))
    known = f" Known words: {choices}." if choices else ""
    words = f"A word ({column.kind}).{known}"
    return Annotated[str | float | bool | None, Field(description=words, examples=examples)]


def _errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Errors, "description": _ERRORS[code]} for code in codes}
