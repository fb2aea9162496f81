"""Why rows are called rare: the columns that raise their scores, and the nearest rare cases."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from rareclass.errors import ErrorKind, setting
from rareclass.model.decisions import refuse_levels
from rareclass.model.facts import HuntFacts
from rareclass.model.model import Model

Explain = Callable[[pl.DataFrame], pl.DataFrame]
"""Columns for rows that are called rare, a row each; the same columns for no row."""

# Explained at a time: what bounds the memory for landmarks and replaced columns.
_ROWS = 1000


def explainer_of(content: Model, k: int) -> Explain:
    """Return what makes three columns for each of k reasons, and two for each of k cases.

    ``reason_1`` is the name of the column that raises a row's score most, ``value_1`` its cell as
    text, ``effect_1`` by how much (`rareclass.explain.explain`), and so on; empty where fewer
    columns raise it. Effects are against a typical cell for `RareClassifier`, and against the mean
    of the training rows for models of encoded rows.

    Of several rare classes ``class_reason_1`` is the column that speaks most for the most probable
    class, and ``class_effect_1`` by how much, in log-odds. ``case_1`` is the number or name of the
    nearest rare row that the file keeps, ``distance_1`` how far it is (`nearest_cases`).
    """
    if k < 1:
        raise ErrorKind.SETTING.error(
            f"{setting('explain', k)} is not a number of columns.", "Give 1 or more."
        )
    refuse_levels(content.decision, setting("explain"), "Leave it out.")
    fault, remedy = "", ""
    if isinstance(content.facts.method, HuntFacts):
        fault = "the score of a hunt gives no reasons"
        remedy = "See description.csv in the folder of the hunt."
    elif content.facts.format == "svmlight":
        fault = "rows of an svmlight file have no named columns"
        remedy = "rareclass.explain.explain explains them, from Python."
    if fault:
        raise ErrorKind.UNSUPPORTED.error(f"{setting('explain')}: {fault}.", remedy)

    def explain_rows(rows: pl.DataFrame) -> pl.DataFrame:
        parts = [_reasons(content, part, k) for part in rows.iter_slices(_ROWS)]
        return pl.concat(parts) if parts else _reasons(content, rows, k)

    return explain_rows


def told_columns(content: Model, k: int) -> dict[str, Any]:
    """Return the columns of k reasons and, where rare rows are kept, of k cases, with their types.

    The columns of a reason stand together, and so do those of a case.
    """
    text, number = pl.String, pl.Float64
    of_each: list[dict[str, Any]] = [{"reason": text, "value": text, "effect": number}]
    if content.rare_classes:
        of_each.append({"class_reason": text, "class_effect": number})
    if content.cases is not None:
        case = pl.Int64 if content.cases.names is None else text
        of_each.append({"case": case, "distance": number})
    return {
        f"{name}_{place + 1}": dtype
        for columns in of_each
        for place in range(k)
        for name, dtype in columns.items()
    }


def _reasons(content: Model, rows: pl.DataFrame, k: int) -> pl.DataFrame:
    """Return the reasons of typed rows and the cases near them, as columns of a file."""
    from rareclass.explain.explaining import explain  # every kind of model

    schema = told_columns(content, k)
    if not rows.height:
        return pl.DataFrame(schema=schema)
    X = content.encode(rows)
    told = explain(content.estimator, X, groups=content.encoder.feature_columns)
    truth = {column.name: column.words_of_truth for column in content.encoder.columns}
    columns: list[Sequence[Any]] = []
    for reasons, raised in _strongest(told, k):
        cells = [name and _text(rows[name][row], truth[name]) for row, name in enumerate(reasons)]
        columns += [reasons, cells, raised]
    columns += [] if not content.rare_classes else _class_reasons(content, X, k)
    columns += _nearest(content, X, k)
    return pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema)


def _class_reasons(content: Model, X: Any, k: int) -> list[Sequence[Any]]:
    """Return columns that speak for the most probable class, and how much: two for each of k."""
    from rareclass.explain.explaining import explain_class

    model: Any = content.estimator
    if not model.has_several:  # one of the classes alone was there to learn from
        return [[None] * X.shape[0]] * (2 * k)
    return [column for each in _strongest(explain_class(model, X), k) for column in each]


def _strongest(told: Any, k: int) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield the columns that raise the score of each row most, and by how much, k times."""
    from rareclass.explain.explaining import strongest_of

    effects = told.contributions
    for chosen in strongest_of(effects, k).T:
        raised = [float(effects[row, j]) if j >= 0 else None for row, j in enumerate(chosen)]
        yield [told.columns[j] if j >= 0 else None for j in chosen], raised


def _nearest(content: Model, X: Any, k: int) -> list[Sequence[Any]]:
    """Return names or numbers, and distances, of the nearest cases: two columns for each of k."""
    if content.cases is None:
        return []
    from rareclass.explain.near_cases import case_features, nearest_of

    model: Any = content.estimator
    number, features = content.cases.number, content.cases.features
    named: Any = number if content.cases.names is None else np.array(content.cases.names, object)
    if features is None:
        is_case = number > 0
        named, features = named[is_case], case_features(model, model.landmarks_[is_case])
    found = nearest_of(model, case_features(model, X), features, k)
    pairs = zip(named[found.places].T.tolist(), found.distances.T.tolist(), strict=True)
    columns: list[Sequence[Any]] = [column for pair in pairs for column in pair]
    # There may be fewer cases than places for them.
    return columns + [[None] * len(found.places)] * (2 * k - len(columns))


def _text(cell: Any, truth: dict[float, str]) -> str | None:
    """Return a cell as it would be read in a table; `truth` has the words for 1 and 0.

    >>> _text(73.25, {}), _text(3.0, {}), _text(1.0, {1.0: "true"}), _text("DE", {})
    ('73.25', '3', 'true', 'DE')
    """
    if cell is None or cell in truth:
        return truth.get(cell)
    return f"{cell:.10g}" if isinstance(cell, float) else str(cell)
