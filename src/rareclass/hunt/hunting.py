"""From a few labelled rows of a table to the rows that belong with them, and why.

1. Encode the columns as points in which every column counts alike.
2. Rank the unlabelled rows, surest first, by what tells the cases from all other rows
   (`score_unlabelled`, `sureness`).
3. Describe where the cases lie by balls around them, chosen by held-out labelled rows where there
   are any (`fit_balls`).
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.hunt import HuntEncoder
from rareclass.encoding.target import label_counts
from rareclass.errors import ErrorKind, setting
from rareclass.findings import Finding, FindingKind, warnings_as
from rareclass.hunt import HuntSettings
from rareclass.hunt.case_score import (
    CumulativeCounts,
    Floats,
    ListOrder,
    ScoredUnlabelled,
    ShareOfCases,
    score_unlabelled,
    sureness,
)
from rareclass.labels.states import UNKNOWN
from rareclass.machine import track
from rareclass.review.journal import ReviewJournal
from rareclass.review.table import HUNT_OPTIONS, LabelRoles, ReviewTable, codes_of, roles_in
from rareclass.rows import LabelledRows, as_source

if TYPE_CHECKING:
    from rareclass.hyperball import RACH, RACHCV

# Labelled rows of a kind without which none is held out.
LEAST_TO_HOLD_OUT = 2
# Unlabelled rows that may shape a ball.
_MOST_KEPT = 5_000
# Rows that are written: the surest.
DEFAULT_TOP = 100
# Lengths of the list's beginning for which the share of cases is reported.
_FIRST_READ = (10, 50, 100)
_BLOCK_ROWS = 50_000
# Settings of a hunt that are parameters of RACH.
_SETTINGS = {"C1": "c1", "C2": "c2", "rare_share": "share"} | {
    name: name for name in ("kernel", "n_balls", "filter")
}


@dataclass(frozen=True)
class HuntLabels:
    """Labels of all rows."""

    code: NDArray[np.integer]  # k for the k-th rare value, 0 if cleared, -1 without a label
    rare: tuple[str, ...]  # the rare values, each of which has rows

    @property
    def y(self) -> NDArray[np.str_]:
        """The rare value of each row, one other value for cleared rows, "" without a label."""
        cleared = f"not {' or '.join(self.rare)}"  # longer than every rare value
        return np.array(["", cleared, *self.rare])[self.code + 1]

    @property
    def n_rare(self) -> dict[str, int]:
        """Rows of every rare value."""
        return {v: int((self.code == k).sum()) for k, v in enumerate(self.rare, start=1)}

    @property
    def n_cleared(self) -> int:
        """Rows known to be none of the rare values."""
        return int((self.code == 0).sum())

    @property
    def unlabelled(self) -> NDArray[np.int64]:
        """Positions of the rows without a label."""
        return np.flatnonzero(self.code == UNKNOWN)


@dataclass(frozen=True)
class HuntTable:
    """A table and the labels to hunt by: its own, and the verdicts of a journal."""

    rows: ReviewTable
    labels: HuntLabels

    @classmethod
    def of(cls, rows: ReviewTable, roles: LabelRoles, journal: ReviewJournal | None = None) -> Self:
        """Give each label of a table its role; a journal has roles of its own, and verdicts.

        Raises `InputError` when a value stands for two things or for none of them, no row has one
        that was asked for, no row is a case, or none is left to hunt in.
        """
        target = rows.target
        if journal is None:
            known = label_counts(rows.labels.drop_nulls())
            roles = roles_in(known, target, roles, HUNT_OPTIONS, cleared_may_be_new=False)
        else:
            roles = LabelRoles(journal.header.rare, journal.header.rest)
        code = codes_of(rows.labels, target, roles, HUNT_OPTIONS)
        if journal is not None:
            code = journal.states(rows.keys, code).code
        if not (code > 0).any():
            raise ErrorKind.LABELS.error(
                f"No row of {len(code):,} is known to be {' or '.join(roles.rare)} in column "
                f"{target!r}.",
                "A hunt needs at least one confirmed row: write its value there. rareclass review "
                "lists rows to begin with.",
                column=target,
            )
        if not (code == UNKNOWN).any():
            raise ErrorKind.LABELS.error(
                f"Column {target!r} is filled in all {len(code):,} rows: no row is left to search.",
                "Leave the cells empty whose answer is not known; to learn from rows that are all "
                "labelled there is rareclass fit.",
                column=target,
            )
        there, place = np.unique(code[code > 0], return_inverse=True)
        code = code.astype(np.int64)
        code[code > 0] = place + 1
        return cls(rows, HuntLabels(code, tuple(roles.rare[k - 1] for k in there)))


@dataclass(frozen=True)
class HeldOutF1:
    """F1 of the rare rows among held-out labelled rows."""

    f1: float
    low: float  # 95 % interval
    high: float
    n_rare: int  # labelled rows behind it
    n_cleared: int
    words: str = ""  # the figures as a sentence


@dataclass(frozen=True)
class HuntBall:
    """One ball of a hunt."""

    name: str  # the rare value, with a number where the value has several balls
    label: str
    radius: float  # in standardised units
    n_found: int  # unlabelled rows inside
    n_weighed: int  # unlabelled rows near enough to shape it


class RankedRows(NamedTuple):
    """Unlabelled rows, the surest first (`CaseScore`).

    ``sure`` is the expected share of cases among the rows from the first down to this one
    (`sureness`), NaN where no row is cleared and no share is known. A row belongs to the rare value
    that scores it highest, and to the ball of that value in which it lies deepest.
    ``relative_depth`` is ``1 - distance^2 / R^2``: 1 at the centre, 0 on the sphere, below 0
    outside, and alike for balls of all sizes. RACH's depth, ``R^2 - distance^2``, is this times
    ``R^2``. The files of a hunt call it ``depth``.
    """

    rows: NDArray[np.int64]  # positions in the table
    score: Floats
    ball: NDArray[np.int64]  # the one that each belongs to
    relative_depth: Floats
    distance: Floats  # to the centre of that ball, in standardised units
    found: NDArray[np.bool_]  # inside the ball
    sure: Floats


@dataclass(frozen=True)
class ChosenParameters:
    """Parameters of the balls, and where they come from."""

    kernel: str  # "none" for round balls
    C1: float
    C2: float
    width: float | None
    margin: float
    radius_slack: Any  # a number, or one for each rare value
    n_balls: int | str
    by: str  # "cross-validation", "options" or "defaults"
    given: list[str]  # parameters that the settings gave


@dataclass(frozen=True)
class Hunt:
    """Results of a hunt."""

    model: "RACH"  # fitted
    encoder: HuntEncoder
    balls: tuple[HuntBall, ...]
    ranking: RankedRows  # the rows that are written
    order: ListOrder  # of all unlabelled rows, by which new rows are scored
    # places in the list that the cases would have if nobody had labelled them, each hidden in turn
    held_out_places: NDArray[np.int64]
    # for each ball the rows inside: those found, and the rare rows that it was fitted to
    members: tuple[NDArray[np.int64], ...]
    distances: Floats  # of unlabelled rows to centres, (n_unlabelled, n_balls)
    estimate: HeldOutF1 | None  # None where there were too few labelled rows to hold any out
    chosen: ChosenParameters
    # what the user should know; text where it is a warning without a finding
    findings: list[Finding | str] = field(default_factory=list)

    @property
    def expected(self) -> dict[int, float]:
        """Expected share of cases among the first so many rows; empty where not known."""
        sure = self.ranking.sure
        counts = [k for k in _FIRST_READ if k < len(sure)] + [len(sure)]
        return {k: float(sure[k - 1]) for k in counts if k and sure[k - 1] == sure[k - 1]}

    @property
    def refound(self) -> dict[int, int]:
        """How many cases would be among the first so many rows if nobody had labelled them."""
        places = self.held_out_places
        counts = [k for k in _FIRST_READ if k <= len(self.ranking.rows)] if len(places) else []
        return {k: int((places <= k).sum()) for k in counts}

    @property
    def notes(self) -> list[str]:
        """The findings in words."""
        return [words_of(each) for each in self.findings]

    @property
    def n_found(self) -> int:
        """Number of unlabelled rows inside a ball."""
        return sum(ball.n_found for ball in self.balls)


def hunt(table: HuntTable, settings: HuntSettings) -> Hunt:
    """Find the unlabelled rows that belong with the rare ones.

    Raises `InputError` when the settings cannot be met with these rows.
    """
    notes: list[Finding | str] = []
    encoder, labels = HuntEncoder(table.rows.used), table.labels
    with track("Encoding"), warnings_as(notes):
        X = encoder.fit_transform(table.rows.frame)
    names = tuple(feature.name for feature in encoder.coordinates_)
    points = LabelledRows(as_source(X), labels.y, None, names)
    model, estimate = fit_balls(points, labels, settings, notes)
    distances = _distances(model, X, labels.unlabelled)
    with track("Ranking"):
        scored = score_unlabelled(X, labels.code, settings.folds, settings.seed)
    n_cases = None if settings.share is None else settings.share * len(distances)
    # Without cleared rows nothing but a known share bounds how many of the first rows are cases.
    bounded = can_hold_out(labels) or n_cases is not None
    share = sureness(len(distances), scored.of_cases, n_cases) if bounded else None
    ranking = _rank(model, labels, distances, scored, share)
    balls = _found_balls(model, labels, ranking)
    n_asked = settings.top or (DEFAULT_TOP if n_cases is None else max(round(n_cases), 1))
    kept = RankedRows._make(column[:n_asked] for column in ranking)
    members = tuple(
        np.concatenate(
            [ball.rows[ball.kinds > 0], ranking.rows[ranking.found & (ranking.ball == number)]]
        )
        for number, ball in enumerate(model.balls_)
    )
    under_last = float(np.nextafter(kept.score[-1], -np.inf))
    order = ListOrder(scored.score, CumulativeCounts.of(-ranking.score), share, under_last)
    by = "options" if settings.given() else "defaults"
    chosen = ChosenParameters(
        "none" if model.kernel is None else model.kernel,
        float(model.C1),
        float(model.C2),
        None if model.width_ is None else float(model.width_),
        float(model.margin),
        model.radius_slack,
        model.n_balls,
        by if estimate is None else "cross-validation",
        [name for name in settings.given() if name != "width" or model.kernel],
    )
    return Hunt(
        model, encoder, balls, kept, order, scored.of_cases, members, distances, estimate, chosen,
        notes,
    )  # fmt: skip


def _distances(model: "RACH", X: NDArray[Any], rows: NDArray[np.int64]) -> Floats:
    """Return the distance of some rows to every centre, a block at a time."""
    parts = [
        np.column_stack(
            [np.sqrt(ball.space.squared_distances(X[block], ball.center)) for ball in model.balls_]
        )
        for block in np.array_split(rows, max(1, len(rows) // _BLOCK_ROWS))
    ]
    return np.concatenate(parts)


def _rank(
    model: "RACH",
    labels: HuntLabels,
    distances: Floats,
    scored: ScoredUnlabelled,
    share: ShareOfCases | None,
) -> RankedRows:
    """Return all unlabelled rows in order."""
    rows, value = labels.unlabelled, scored.by_value.argmax(axis=1)
    squared_radius = np.array([ball.squared_radius for ball in model.balls_])
    of_value = np.array([labels.rare.index(str(ball.label)) for ball in model.balls_])
    own = np.where(of_value == value[:, None], squared_radius - distances**2, -np.inf)
    ball = own.argmax(axis=1)
    distance = distances[np.arange(len(rows)), ball]
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = 1.0 - distance**2 / squared_radius[ball]
    # A ball without a radius is its centre.
    depth = np.where(squared_radius[ball] > 0.0, depth, np.where(distance == 0.0, 1.0, -np.inf))
    score, found = scored.by_value.max(axis=1), own.max(axis=1) >= 0.0
    order = np.argsort(-score, kind="stable")  # equal ones in the order of the file
    sure = np.full(len(rows), np.nan) if share is None else share(np.arange(1, len(rows) + 1))
    return RankedRows(
        rows[order], score[order], ball[order], depth[order], distance[order], found[order], sure
    )


def _found_balls(model: "RACH", labels: HuntLabels, ranking: RankedRows) -> tuple[HuntBall, ...]:
    """Name the balls and count what they hold."""
    values = [str(ball.label) for ball in model.balls_]
    balls = []
    for k, ball in enumerate(model.balls_):
        name = values[k]
        if values.count(name) > 1:
            name = f"{name} ({values[: k + 1].count(values[k])})"
        n_found = int((ranking.found & (ranking.ball == k)).sum())
        n_weighed = int((labels.code[ball.rows] == UNKNOWN).sum())
        balls.append(HuntBall(name, values[k], ball.radius, n_found, n_weighed))
    return tuple(balls)


def can_hold_out(labels: HuntLabels) -> bool:
    """Check if there are labelled rows to spare for choosing parameters."""
    return min(*labels.n_rare.values(), labels.n_cleared) >= LEAST_TO_HOLD_OUT


def fit_balls(
    points: LabelledRows, labels: HuntLabels, settings: HuntSettings, notes: list[Finding | str]
) -> tuple["RACH", HeldOutF1 | None]:
    """Fit balls to the encoded rows; add notes for the user.

    Parameters are chosen by held-out rows; without an estimate there were too few of them.
    """
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
    if not can_hold_out(labels):
        return _fit_unchosen(points, labels, settings, common, notes), None
    best, found = _search(settings.kernels[0], points, settings, common)
    for kernel in settings.kernels[1:]:
        other, told = _search(kernel, points, settings, common)
        if _is_better(other, best, labels):
            best, found = other, told
    notes += found
    low, high = best.score_interval_
    estimate = HeldOutF1(
        float(best.best_score_),
        float(low),
        float(high),
        sum(labels.n_rare.values()),
        labels.n_cleared,
        best.uncertainty_,
    )
    return best.best_estimator_, estimate


def _is_better(other: "RACHCV", best: "RACHCV", labels: HuntLabels) -> bool:
    """Check if a shape is better than a round ball, which can be read, by half a held-out row."""
    from rareclass.hyperball.choice import as_good_from

    if "pu_score" not in best.cv_results_:
        return bool(other.best_score_ > best.best_score_)
    score, bar = (one.cv_results_["pu_score"][one.best_index_] for one in (best, other))
    return bool(score < as_good_from(bar, list(labels.n_rare.values())))


def _search(
    kernel: str | None, points: LabelledRows, settings: HuntSettings, common: dict[str, Any]
) -> tuple["RACHCV", list[Finding | str]]:
    """Choose prices and width for one shape; return the notes as well."""
    from rareclass.hyperball import RACHCV

    search = RACHCV(
        C1s=None if settings.c1 is None else [settings.c1],
        C2s=None if settings.c2 is None else [settings.c2],
        widths=None if settings.width is None else [settings.width],
        cv=settings.folds,
        kernel=kernel,
        learn_radius=settings.share is None,
        **common,
    )
    notes: list[Finding | str] = []
    with warnings_as(notes, of_balls):
        search.fit_rows(points)
    return search, notes


def _fit_unchosen(
    points: LabelledRows,
    labels: HuntLabels,
    settings: HuntSettings,
    common: dict[str, Any],
    notes: list[Finding | str],
) -> "RACH":
    """Fit with the given prices, or prices that make the smallest ball around the cases."""
    from rareclass.hyperball import RACH

    common |= settings.given() | {"kernel": settings.kernels[0]}
    # Nothing would show that unlabelled rows drawing the ball make it better.
    common.setdefault("C2", 0.0)
    common["n_balls"] = settings.n_balls or 1
    with warnings_as(notes, of_balls):
        model = RACH(**common).fit_rows(points)
    values = {"n_rare": labels.n_rare, "n_cleared": labels.n_cleared}
    not_chosen = {name: None for name in ("C1", "C2") if name not in settings.given()}
    notes.append(Finding(FindingKind.NONE_HELD_OUT, values, not_chosen))
    return model


def in_settings(name: str, change: Any) -> str:
    """Word a parameter of RACH as a setting of a hunt; "" where there is none.

    >>> in_settings("n_balls", "auto"), in_settings("filter", "larger"), in_settings("C1", None)
    ("n_balls='auto'", 'a larger filter=', 'c1=')
    >>> in_settings("radius", "solved"), in_settings("max_kept", "larger")
    ('no share=', '')
    """
    from rareclass.hyperball.ball import in_parameters

    if name == "radius":  # a hunt sets the border by share just where it is given one
        return f"no {setting('share')}"
    return in_parameters(_SETTINGS[name], change) if name in _SETTINGS else ""


def of_balls(finding: Finding) -> Finding | None:
    """Return a finding about a ball as it is; None for others, whose warnings have the words."""
    from rareclass.hyperball.ball import KINDS

    return finding if finding.kind in KINDS else None


def words_of(note: Finding | str) -> str:
    """Word a finding of a hunt, its remedies as settings of a hunt."""
    if isinstance(note, str):
        return note
    values = note.values
    if note.kind != FindingKind.NONE_HELD_OUT:
        from rareclass.hyperball.ball import sentence

        return sentence(note, in_settings)
    n_rare, n_cleared = values["n_rare"], values["n_cleared"]
    fewest = min(n_rare, key=lambda label: n_rare[label])
    what = f"{'only 1 row' if n_cleared else 'no row'} is known to be cleared"
    if n_rare[fewest] < LEAST_TO_HOLD_OUT:
        what = f"only 1 row is known to be {fewest}"
    options = [in_settings(name, change) for name, change in note.remedy.items()]
    verb = "is" if len(options) == 1 else "are"
    also = f"{' and '.join(options)} {verb} not chosen and " if options else ""
    return (
        f"{what}: none can be held out, so that {also}how good the ball is is not known. Look at "
        "the first rows of the list, label them, and hunt again."
    )
