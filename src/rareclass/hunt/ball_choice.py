"""The balls of a hunt: their prices and shape chosen on held-out rows where there are any."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rareclass.findings import Finding, warnings_as
from rareclass.hunt.sureness import HeldOut
from rareclass.hunt.table import HuntLabels
from rareclass.rows import LabelledRows

if TYPE_CHECKING:
    from rareclass.hyperball import RACH, RACHCV

# Fewer labelled rows of a kind, and there are none to hold out.
LEAST_TO_HOLD_OUT = 2
# Unlabelled rows that are looked at closely.
_MOST_KEPT = 5_000
# The options of the command line that findings of balls may speak of.
_OPTIONS = {
    "C1": "--c1",
    "C2": "--c2",
    "kernel": "--kernel",
    "n_balls": "--balls",
    "rare_share": "--share",
    "filter": "--filter",
}


@dataclass(frozen=True)
class HuntSettings:
    """How to hunt."""

    # shape of the ball, "none" or "gaussian"; None tries both where they can be compared on held-
    # out rows
    kernel: str | None = None
    # prices of a cleared row inside and of an unlabelled row outside; None: chosen
    c1: float | None = None
    c2: float | None = None
    # sigma of the kernel in standardised units, which makes the shape "gaussian"; None: chosen
    width: float | None = None
    # of the unlabelled rows that is rare, where it is known: so many lie in the balls
    share: float | None = None
    # a rare value has so many, or "auto"; None: chosen, 1 where it cannot be
    n_balls: int | str | None = None
    # whether unlabelled rows far from every case are left out before the ball is drawn; a number:
    # so many times the threshold, 3 where it is True
    filter: bool | float = True
    folds: int = 5
    # write so many unlabelled rows, the nearest, whether they are inside or not
    top: int | None = None
    seed: int = 0  # of the folds, of k-means and of samples

    @property
    def kernels(self) -> tuple[str | None, ...]:
        """RACH's names of the shapes to try, the first where there is no choosing."""
        if self.kernel is not None:
            return (None if self.kernel == "none" else self.kernel,)
        return (None, "gaussian") if self.width is None else ("gaussian",)

    def given(self) -> dict[str, float]:
        """Prices and width that are not to be chosen, as RACH calls them."""
        known = {"C1": self.c1, "C2": self.c2, "width": self.width}
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True)
class HeldOutF1:
    """How well held-out labelled rows were told apart."""

    f1: float  # of the rare rows
    low: float  # 95 % interval
    high: float
    n_rare: int  # labelled rows that it stands on
    n_cleared: int
    words: str = ""  # what that means


class ChosenBalls(NamedTuple):
    """The balls of a hunt, and what was learned in choosing them."""

    model: "RACH"  # fitted
    estimate: HeldOutF1 | None  # None where there were too few labelled rows to hold any out
    held_out: HeldOut | None  # likewise
    by: str  # how the parameters were come by: "cross-validation", "options" or "defaults"


def can_hold_out(labels: HuntLabels) -> bool:
    """Whether there are labelled rows to spare for choosing parameters."""
    return min(*labels.n_rare.values(), labels.n_cleared) >= LEAST_TO_HOLD_OUT


def fit_balls(
    points: LabelledRows, labels: HuntLabels, settings: HuntSettings, notes: list[str]
) -> "ChosenBalls":
    """Fit balls to the encoded rows, and add what the user should know to the notes."""
    common: dict[str, Any] = {
        "n_balls": settings.n_balls,
        "random_state": settings.seed,
        "pos_label": list(labels.rare),
        # Cases are sought out: their share among the labelled rows is not that among the others.
        "radius": "solved" if settings.share is None else "share",
        "rare_share": settings.share,
        "filter": settings.filter,
        "max_kept": _MOST_KEPT,
    }
    if can_hold_out(labels):
        return _choose(points, labels, settings, common, notes)
    model = _fit_unchosen(points, labels, settings, common, notes)
    return ChosenBalls(model, None, None, "options" if settings.given() else "defaults")


def _choose(
    points: LabelledRows,
    labels: HuntLabels,
    settings: HuntSettings,
    common: dict[str, Any],
    notes: list[str],
) -> ChosenBalls:
    """Choose among shapes, numbers of balls and prices by held-out labelled rows."""
    notes_of: dict[str | None, list[str]] = {}
    kernels = settings.kernels
    best = _search(kernels[0], points, settings, common, notes_of)
    if len(kernels) > 1:
        other = _search(kernels[1], points, settings, common, notes_of)
        best = other if _is_better(other, best, labels) else best
    notes += notes_of[best.kernel]
    low, high = best.score_interval_
    estimate = HeldOutF1(
        float(best.best_score_),
        float(low),
        float(high),
        sum(labels.n_rare.values()),
        labels.n_cleared,
        best.uncertainty_,
    )
    held_out = HeldOut(best.held_out_rows_, best.held_out_depths_)
    return ChosenBalls(best.best_estimator_, estimate, held_out, "cross-validation")


def _is_better(other: "RACHCV", best: "RACHCV", labels: HuntLabels) -> bool:
    """Whether a shape is better than a round ball, which can be read, by half a held-out row.

    Where the share is known, both balls hold as many rows, and the F1 tells.
    """
    from rareclass.hyperball.choice import as_good_from

    if "pu_score" not in best.cv_results_:
        return bool(other.best_score_ > best.best_score_)
    score, bar = (one.cv_results_["pu_score"][one.best_index_] for one in (best, other))
    return bool(score < as_good_from(bar, list(labels.n_rare.values())))


def _search(
    kernel: str | None,
    points: LabelledRows,
    settings: HuntSettings,
    common: dict[str, Any],
    notes_of: dict[str | None, list[str]],
) -> "RACHCV":
    """Choose prices and width for one shape."""
    from rareclass.hyperball import RACHCV

    search = RACHCV(
        C1s=_grid(settings.c1),
        C2s=_grid(settings.c2),
        widths=_grid(settings.width),
        cv=settings.folds,
        kernel=kernel,
        learn_radius=settings.share is None,
        **common,
    )
    notes_of[kernel] = []
    with warnings_as(notes_of[kernel], note_of):
        search.fit_rows(points)
    return search


def _fit_unchosen(
    points: LabelledRows,
    labels: HuntLabels,
    settings: HuntSettings,
    common: dict[str, Any],
    notes: list[str],
) -> "RACH":
    """Fit with the prices given, or such as make the smallest ball around the cases."""
    from rareclass.hyperball import RACH

    common |= settings.given() | {"kernel": settings.kernels[0]}
    # Nothing would show that unlabelled rows drawing the ball make it better.
    common.setdefault("C2", 0.0)
    common["n_balls"] = settings.n_balls or 1
    model = RACH(**common)
    with warnings_as(notes, note_of):
        model.fit_rows(points)
    notes.append(_too_few_to_choose(labels, settings))
    return model


def _grid(value: float | None) -> Sequence[float] | None:
    return None if value is None else [value]


def _too_few_to_choose(labels: HuntLabels, settings: HuntSettings) -> str:
    fewest = min(labels.n_rare, key=lambda label: labels.n_rare[label])
    if labels.n_rare[fewest] < LEAST_TO_HOLD_OUT:
        what = f"only 1 row is known to be {fewest}"
    else:
        count = "no row is" if not labels.n_cleared else "only 1 row is"
        what = f"{count} known to be cleared"
    open_prices = [f"--{name}" for name in ("c1", "c2") if getattr(settings, name) is None]
    verb = "is" if len(open_prices) == 1 else "are"
    prices = f"{' and '.join(open_prices)} {verb} not chosen and " if open_prices else ""
    return (
        f"{what}: none can be held out, so that {prices}how good the ball is is not known. Look at "
        "the first rows found, label them, and hunt again."
    )


def in_options(name: str, change: Any) -> str:
    """What RACH calls its parameters in the options of the command line; "" where it has none.

    >>> in_options("n_balls", "auto"), in_options("filter", "larger"), in_options("filter", False)
    ('--balls auto', 'a larger --filter', '--filter no')
    >>> in_options("radius", "solved"), in_options("C2", 0.5), in_options("max_kept", "larger")
    ('no --share', '--c2 0.5', '')
    """
    if name == "radius":  # a hunt asks for one by share where it is given a share, and only there
        return "no --share"
    option = _OPTIONS.get(name)
    if option is None or change is None:
        return option or ""
    if change in ("larger", "smaller"):
        return f"a {change} {option}"
    if isinstance(change, bool):
        return f"{option} {'yes' if change else 'no'}"
    return f"{option} {change:.3g}" if isinstance(change, float) else f"{option} {change}"


def note_of(finding: Finding) -> str | None:
    """What a hunt says of a finding, of which only those of balls speak of parameters."""
    from rareclass.hyperball.findings import KINDS, sentence

    return sentence(finding, in_options) if finding.kind in KINDS else None
