"""Which measures rankings are compared by, with the options that each has."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rareclass import metrics
from rareclass.errors import InputError, counted, name_hint
from rareclass.metrics import Interval
from rareclass.parameters import is_number

DEFAULT = ("roc_auc", "average_precision", "precision_at_k")
_WORDS = {
    "roc_auc": "AUC",
    "average_precision": "average precision",
    "precision_at_k": "precision at {k:,g}",
    "recall_at_k": "recall at {k:,g}",
    "lift_at_k": "lift at {k:,g}",
    "partial_auc": "AUC up to a false-positive rate of {max_fpr:g}",
}


class Measure(NamedTuple):
    """A measure as `paired_difference` takes it, and what people call it."""

    name: str
    options: Mapping[str, float]

    @property
    def words(self) -> str:
        """Such as "precision at 100"."""
        return _WORDS[self.name].format(**self.options)

    def interval(self, y: Any, scores: Any, sample_weight: Any, level: float) -> Interval:
        """The value of one ranking with its interval, rows being independent."""
        of_measure: Callable[..., Interval] = getattr(metrics, f"{self.name}_interval")
        return partial(of_measure, **self.options)(
            y, scores, sample_weight=sample_weight, level=level
        )


def chosen_measures(
    names: Sequence[str],
    k: float | Sequence[float | None] | None,
    max_fpr: float,
    n_rare: float,
    n_rows: float,
) -> list[Measure]:
    """Measures by name; one at the top of the list is taken at each k, `n_rare` for None.

    Raises `InputError` where there is none of a name, no name at all, or a k beyond the rows.
    """
    asked = [names] if isinstance(names, str) else list(names)
    if not asked:
        raise InputError("measures= names no measure.", f"There are: {', '.join(_WORDS)}.")
    given: list[Any] = list(k) if isinstance(k, Iterable) else [k]
    ks = [max(1.0, round(n_rare)) if each is None else each for each in given]
    for each in ks:
        if not is_number(each, high=n_rows * (1.0 + 1e-9), ends="(]"):
            raise InputError(
                f"k = {each!r} is not between 0 and the {counted(n_rows, 'row')} that are judged.",
                "Give a smaller k.",
            )
    found: dict[str, Measure] = {}
    for name in asked:
        if name not in _WORDS:
            raise InputError(
                f"measures= names {name!r}, which is none.", name_hint(name, _WORDS, "There are")
            )
        for options in _options(name, ks, max_fpr):
            measure = Measure(name, options)
            found.setdefault(measure.words, measure)
    return list(found.values())


def _options(name: str, ks: Sequence[float], max_fpr: float) -> list[dict[str, float]]:
    if name.endswith("_at_k"):
        return [{"k": float(each)} for each in ks]
    return [{"max_fpr": max_fpr}] if name == "partial_auc" else [{}]
