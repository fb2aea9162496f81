"""A fitted model on tables: its file, its scores, its threshold and its probabilities."""

from dataclasses import dataclass
from typing import Any

from rareclass.parameters import opt

_CALLS = "Rows called rare, instead of by the model's threshold: one of"


def strict_option() -> Any:
    """Return the setting by which rows unlike training are refused."""
    return opt(
        "Refuse rows unlike training: the distribution of a column or of the scores is far from "
        "training (see rareclass monitor), or alerts are significantly twice or half as frequent "
        "as on held-out rows.",
        False,
    )


@dataclass(frozen=True)
class ScoreSettings:
    """Settings of scoring a file."""

    id_columns: tuple[str, ...] = opt("Column of DATA to copy to the scores. Many times.", ())
    alerts_only: bool = opt("Write only the rows called rare, the highest score first.", False)
    top: int | None = opt("Number of rows with the highest scores.", rich_help_panel=_CALLS)
    threshold: float | None = opt("Rows above this score.", rich_help_panel=_CALLS)
    explain: int | None = opt(
        "For rows called rare, the number of reasons to write: columns reason_1, value_1 (its "
        "cell), effect_1 (score added), ...; and the nearest rare training rows: case_1 (number "
        "in the training file), distance_1, ..."
    )
    unlike: bool = opt(
        "Write unlike_training: the columns with a value that training did not have.", False
    )
    strict: bool = strict_option()
