"""``rareclass threshold``: another rule for the threshold of a model, without training again."""

import numpy as np
import polars as pl

from rareclass.decide.threshold_rule import ChosenThreshold, chosen_by_hand
from rareclass.encoding.target import labels_as_text
from rareclass.errors import ErrorKind, InputError, name_hint
from rareclass.model.drift import InputSummary
from rareclass.model.model import Model
from rareclass.model.threshold import DecisionRule, ScoredRows
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, TablePlace, open_table


def with_rule(
    content: Model,
    rule: DecisionRule,
    data: TablePlace | None,
    time: str | None,
    separator: str | None,
) -> tuple[Model, ChosenThreshold]:
    """Return the model with the threshold that the rule chooses, and what is known of it.

    It is judged on the rows of a file with the target, or on those that were held out of the
    training, as the model file has them.

    Raises `InputError` where there are no such rows, or the rule cannot be judged on them.
    """
    _refuse_levels(content)
    if data is None:
        chosen = rule.choose(_held_out(content, rule))
        chosen = chosen.approximately("the model learned from these rows as well")
    else:
        rows, beside = _read(content, data, rule, time, separator)
        assert rows.places is not None
        chosen = rule.choose(rows, beside, time, rows.places + 1)
    return content.with_thresholds(chosen.threshold, chosen), chosen


def with_score(
    content: Model, score: float, data: TablePlace | None, separator: str | None
) -> tuple[Model, ChosenThreshold]:
    """Return the model with a threshold that was named, and what rows say of it.

    They are those of a file with the target, or those held out of the training, as for a rule.
    Raises `InputError` where there are none.
    """
    _refuse_levels(content)
    if data is None:
        rows = _with_scores(content)
    else:
        rows, _ = _read(content, data, None, None, separator)
    chosen = chosen_by_hand(score, rows.y == 1, rows.scores, rows.weight)
    return content.with_thresholds(score, chosen), chosen


def _refuse_levels(content: Model) -> None:
    if not content.has_rare_class:
        raise InputError(
            "A model of levels has a threshold for each, and no rule for them.",
            "Fit one of a rare class: --method auto --positive LEVEL.",
            ErrorKind.UNSUPPORTED,
        )


def _with_scores(content: Model) -> ScoredRows:
    if content.held_out is None:
        raise InputError(
            "The model file has no scores of rows held out.",
            "Give a file with the target that the model did not learn from.",
            ErrorKind.UNSUPPORTED,
        )
    return content.held_out


def _held_out(content: Model, rule: DecisionRule) -> ScoredRows:
    held_out = _with_scores(content)
    if rule.columns or rule.needs_time:
        what = f"costs by {rule.columns[0]}" if rule.columns else "alerts a day"
        raise InputError(
            f"The model file has scores of rows held out, and nothing on {what}.",
            "Give a file with the target that the model did not learn from.",
            ErrorKind.UNSUPPORTED,
        )
    return held_out


def _read(
    content: Model,
    data: TablePlace,
    rule: DecisionRule | None,
    time: str | None,
    separator: str | None,
) -> tuple[ScoredRows, pl.DataFrame | None]:
    """Scores and labels of the rows of a file, and the columns that the rule needs."""
    file = open_table(data, separator)
    names: list[str] = []
    if rule is not None:
        names = [*rule.columns, *([time] if time is not None and rule.needs_time else [])]
    beside = _columns(file, names) if names else None
    batches = list(content.score_batches(file, content.target, InputSummary()))
    if not batches:
        raise InputError(f"{data} has no rows.", "Give a file with rows.", ErrorKind.TOO_FEW_ROWS)
    labels = pl.concat([labels_as_text(batch.kept) for batch in batches if batch.kept is not None])
    scores = np.concatenate([batch.scores for batch in batches])
    y = content.decision.codes(labels, str(data))
    kept = y >= 0
    if beside is not None:
        beside = beside.filter(pl.Series(kept))
    labelled = np.flatnonzero(kept)
    return ScoredRows(y[kept].astype(np.int16), scores[kept], None, labelled), beside


def _columns(file: TableFile | SvmlightFile, names: list[str]) -> pl.DataFrame:
    """Columns of a file beside those that the model learned from."""
    if isinstance(file, SvmlightFile):
        raise InputError(
            f"{file.path} is an svmlight file, which has no column {names[0]!r}.",
            "",
            ErrorKind.MISSING_COLUMN,
        )
    for name in names:
        if name not in file.columns:
            raise InputError(
                f"{file.path} has no column {name!r}.",
                name_hint(name, file.columns),
                ErrorKind.MISSING_COLUMN,
            )
    return pl.concat(list(file.batches(names)))
