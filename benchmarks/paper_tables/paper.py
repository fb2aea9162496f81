"""The figures printed in the papers' tables, read from ``paper_values.json``."""

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _values() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("paper_values.json").read_text())


def simulated_auc(overlap: float, rare_share: float) -> dict[str, tuple[float, float | None]]:
    """Table 2: method -> (mean, standard error), 'Bayes' without an error."""
    for row in _values()["table2"]:
        if (row["overlap"], row["rare_share"]) == (overlap, rare_share):
            cells = {name: (cell[0], cell[1]) for name, cell in row["auc"].items()}
            return {**cells, "Bayes": (row["bayes"], None)}
    raise KeyError((overlap, rare_share))


def real_auc(name: str) -> dict[str, tuple[float, float]]:
    """Table 4: method -> (mean, standard error) of one set."""
    return {method: (cell[0], cell[1]) for method, cell in _values()["table4"][name].items()}


def support_vectors(name: str) -> dict[str, int]:
    """Table 5: method -> support vectors of one set. The paper has none for KNN."""
    return dict(_values()["table5"][name])


def set_names() -> list[str]:
    """The 20 sets of Table 3, in its order."""
    return list(_values()["table4"])


def online_figures(table: str) -> dict[str, dict[str, tuple[float, float]]]:
    """cbr3, .., cbr6: set -> learner -> (mean, standard deviation over its runs), as shares."""
    return {
        name: {learner: (cell[0], cell[1]) for learner, cell in cells.items()}
        for name, cells in _values()[table].items()
    }


def moment_figures(table: str) -> dict[str, dict[str, Any]]:
    """mibc2, .., mibc5: set or topic -> method -> [AUC in percent, error], or milliseconds."""
    return dict(_values()[table])
