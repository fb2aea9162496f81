"""From a table to a model file: the methods, and an estimate of how good they are."""

from dataclasses import dataclass

from rareclass.parameters import opt


@dataclass(frozen=True, kw_only=True)
class EstimateSettings:
    """Settings of the rows that are held out, and how they are named."""

    holdout: float | None = opt(
        "Share of rows held out for the estimate; 0: none, at most 0.9. By default auto "
        "cross-validates; others hold out 0.25, or cross-validate with fewer than 20 rare rows.",
        min=0,
        max=0.9,
        show_default=False,
    )
    folds: int = opt("Folds of the cross-validation.", 5, min=2)
    groups: str | None = opt(
        "Column of groups, such as customers: rows of one group are held out together."
    )
    time: str | None = opt("Column with the time of a row: the latest rows are held out.")
    id_column: str | None = opt(
        "Column with row identifiers: not a feature; reasons of rareclass score name similar rare "
        "training rows by it."
    )
