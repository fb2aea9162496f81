"""RankRC and OrdinalRankRC as the command line runs them: landmarks, lam, memory, duration."""

from dataclasses import dataclass, replace
from math import log2
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.target import Positive, positives
from rareclass.errors import ErrorKind, counted, setting
from rareclass.estimators.rankings import KernelRanking
from rareclass.fit.method import EncodedRows, Method, TableSize, Terms, how_chosen
from rareclass.machine import size_text
from rareclass.model.facts import KernelFacts, OrdinalFacts, SolverFacts
from rareclass.model.targets import FoundLabels, LevelFacts, level_target
from rareclass.ranking import OrdinalRankRC, OrdinalRankRCCV, RankRC, RankRCCV
from rareclass.ranking.machine import KernelMachine
from rareclass.ranking.ranking_data import held_whole_bytes
from rareclass.ranking.solve import PAPER_LAMS

DEFAULT_LAM = 2.0**-8
# More rare rows than this are thinned to well-spread ones; fewer are joined by some majority
# rows, which costs little and helps most where rare rows are few (docs/decisions/0006).
MOST_RARE_LANDMARKS = 1000
MAJORITY_LANDMARKS = 200
# From this on a fit is called long.
LONG_SECONDS = 1800.0
# Beyond so many rows width and lam are chosen on as many of them, in a coarser grid and fewer
# folds (docs/decisions/0006); up to there the width is the mean distance, and lam has all rows.
SEARCH_ROWS = 20_000
SEARCH_WIDTHS = (0.5, 0.7, 1.0, 1.4)
SEARCH_LAMS = tuple(2.0**-power for power in range(4, 21, 4))
SEARCH_FOLDS = 2

# Nanoseconds on two cores, from `benchmarks.run scale` and `peers`: of a kernel
# entry that a solver asks about once; of working an entry out, and of a feature in it.
_QUESTION, _ENTRY, _FEATURE = 0.35, 0.6, 0.02
# A stored number of a sparse row costs more.
_STORED = 0.2
# Passes for a lam: fewest, from a million rows on, and most, on small tables.
_LEAST_PASSES, _MOST_PASSES, _MANY_ROWS = 4.5, 12.0, 1e6
# Solvers whose questions are answered in the same pass.
_AT_ONCE = 16
# Bytes of a kernel entry of a table as large as counts here.
_ENTRY_BYTES = 4


@dataclass(frozen=True)
class KernelMethod(Method):
    """Base of the kernel machines; ``lam`` None chooses it by cross-validation.

    See `rareclass.fit.method.Method`.
    """

    parameter: ClassVar[str] = "lam"
    facts_kind: ClassVar[type[KernelFacts]] = KernelFacts
    machine: ClassVar[str]
    sooner: ClassVar[str]  # what takes less time

    lam: float | None = None

    def seconds(self, size: TableSize, terms: Terms) -> float:
        """About how long it takes: every lam on every fold, and the folds' thresholds."""
        n_lams = len(PAPER_LAMS) if self.lam is None else 1
        n_solutions = terms.folds * n_lams + terms.folds
        return kernel_seconds(size, n_landmarks(size.n_rare), n_solutions, terms.memory)

    def outlook(self, size: TableSize, terms: Terms) -> str:
        """Say so when it will take long, and what takes less."""
        seconds = self.seconds(size, terms)
        if seconds < LONG_SECONDS:
            return ""
        return (
            f"{self.machine} is likely to take {duration_text(seconds)} on these "
            f"{size.n_rows:,} rows (a rough estimate). {self.sooner}"
        )

    def lams(self) -> Any:
        """Even one lam is cross-validated: thresholds need scores of rows held out."""
        return PAPER_LAMS if self.lam is None else (self.lam,)

    def lam_unchosen(self, what: str, notes: list[str]) -> float:
        """The lam where there are no folds to choose it by, with a note on that."""
        notes.append(f"Too few {what} may be far off.")
        if self.lam is None:
            notes.append(f"For the same reason lam was not chosen: {DEFAULT_LAM:g} was taken.")
        return self.lam or DEFAULT_LAM

    def chosen_on(self, terms: Terms) -> int | None:
        """How many rows the parameters are chosen on, where these are not all."""
        return None

    def as_chosen(self, model: KernelMachine) -> Self:
        """The method with the lam of `model`."""
        return replace(self, lam=float(model.lam))

    def facts(self, model: KernelMachine, terms: Terms, chosen: Any) -> KernelFacts:
        """Return lam, width, landmarks and how the solver stopped."""
        chosen_on = self.chosen_on(terms)
        return self.facts_kind(
            lam=float(model.lam),
            lam_chosen_by_cross_validation=self.lam is None and terms.folds >= 2,
            width=float(model.width_),
            width_chosen_by_cross_validation=chosen_on is not None,
            n_landmarks=int(model.dual_coef_.shape[0]),
            solver=SolverFacts(model.status_, int(model.n_iter_)),
            chosen_on_rows=chosen_on,
        )

    def summary(
        self, model: KernelMachine, terms: Terms, thresholds: NDArray[np.float64]
    ) -> list[str]:
        """The lines on landmarks and lam."""
        return [
            f"Landmarks: {counted(len(model.dual_coef_), 'row carries', 'rows carry')} the model",
            f"Regulariser lam = {model.lam:.4g} (2^{log2(model.lam):.4g}), "
            f"{how_chosen(self.lam, terms, self.chosen_on(terms))}",
        ]

    def as_stored(self, model: KernelMachine) -> KernelRanking:
        """Return what scores rows: no whitener, which would be most of the file."""
        return KernelRanking.of(model)

    def given(self, n_rare: int, terms: Terms) -> dict[str, Any]:
        """Parameters of the machine that every fit has, for so many rare rows."""
        return {
            "landmarks": choose_landmarks(n_rare),
            "random_state": terms.seed,
            "memory": terms.memory,
        }


@dataclass(frozen=True)
class RankRCMethod(KernelMethod):
    """A kernel machine on the rare rows.

    `width` is sigma of the kernel in encoded numbers, or "mean" for the mean distance of the rows.
    None chooses it together with lam on many rows, and takes the mean on few or with a lam given.
    `on_part` are a width and lam that were chosen so: their threshold is found on a part as well.
    """

    name: ClassVar[str] = "rankrc"
    machine: ClassVar[str] = "RankRC"
    sooner: ClassVar[str] = (
        "mibc, a linear model, needs one pass of them and one for its cross-validation."
    )
    numbers: ClassVar[str] = "quantiles"

    width: float | str | None = None
    on_part: bool = False

    def chosen_on(self, terms: Terms) -> int | None:
        """How many rows width and lam are chosen on, together; None where it is lam on all."""
        is_free = self.lam is None and self.width is None
        return SEARCH_ROWS if is_free and terms.folds >= 2 and terms.n_rows > SEARCH_ROWS else None

    def seconds(self, size: TableSize, terms: Terms) -> float:
        """Estimated seconds: every width and lam on the search sample, then one full fit."""
        if self.chosen_on(terms) is None:
            return super().seconds(size, terms)
        landmarks = n_landmarks(size.n_rare)
        part = size._replace(n_rows=SEARCH_ROWS)
        n_solutions = SEARCH_FOLDS * len(SEARCH_LAMS)
        of_width = kernel_seconds(part, landmarks, n_solutions, terms.memory)
        whole = kernel_seconds(size, landmarks, 1, terms.memory)
        return len(SEARCH_WIDTHS) * of_width + whole

    def as_chosen(self, model: KernelMachine) -> Self:
        """The method with the lam of `model`, and with its width where that was chosen."""
        chosen = super().as_chosen(model)
        if self.width is not None or model.width == "mean":
            return chosen
        return replace(chosen, width=float(model.width), on_part=True)

    def fit(self, rows: EncodedRows, terms: Terms, notes: list[str]) -> RankRC:
        """Fit with cross-validation where there are rows for it."""
        n_rare = int((rows.y == 1).sum())
        check_kernel_memory(
            n_rare,
            rows.X.dtype.itemsize,
            terms.memory,
            instead=f"give {setting('method', 'mibc')}, which has no kernel",
        )
        shared = {"pos_label": 1} | self.given(n_rare, terms)
        if terms.folds < 2:
            lam = self.lam_unchosen("rare rows for cross-validation: the threshold", notes)
            return rows.fit(RankRC(lam=lam, width=self.width or "mean", **shared))
        search = RankRCCV(**self._search(rows, terms), **shared)
        return cast(RankRC, rows.fit(search).best_estimator_)

    def _search(self, rows: EncodedRows, terms: Terms) -> dict[str, Any]:
        """Parameters that are tried, and the rows that they are tried on."""
        lams, width = self.lams(), self.width or "mean"
        if self.chosen_on(terms) is None and not self.on_part:
            return {"lams": lams, "width": width, "cv": rows.cv(terms)}
        folds = rows.cv(terms._replace(folds=min(terms.folds, SEARCH_FOLDS)))
        on_part = {"search_rows": SEARCH_ROWS, "cv": folds}
        if self.on_part:
            return {"lams": lams, "width": width} | on_part
        return {"lams": SEARCH_LAMS, "widths": SEARCH_WIDTHS} | on_part

    def summary(
        self, model: KernelMachine, terms: Terms, thresholds: NDArray[np.float64]
    ) -> list[str]:
        """The lines on landmarks, lam and the width of the kernel."""
        chosen_on = self.chosen_on(terms)
        if chosen_on is not None:
            where = how_chosen(self.width, terms, chosen_on)
        elif isinstance(self.width, float):
            where = "given"
        else:
            where = "the mean distance of rows"
        return [
            *super().summary(model, terms, thresholds),
            f"Kernel width {model.width_:.4g}, {where}",
        ]


@dataclass(frozen=True)
class OrdinalMethod(KernelMethod):
    """A kernel machine for ordered levels, lowest first; ``levels`` None takes numbers by size."""

    name: ClassVar[str] = "ordinal-rankrc"
    machine: ClassVar[str] = "OrdinalRankRC"
    sooner: ClassVar[str] = (
        "A sample of the rows of the majority level takes less, and so does a lam of your own."
    )
    facts_kind: ClassVar[type[KernelFacts]] = OrdinalFacts

    levels: tuple[str, ...] | None = None

    def read_target(self, found: FoundLabels, positive: Positive) -> LevelFacts:
        """The labels in order; there is no rare class among them to name."""
        if named := positives(positive):
            raise ErrorKind.COMBINATION.error(
                f"{setting('positive', ' '.join(named))} names a rare class, but {self.name} "
                "ranks all levels.",
                f"Leave {setting('positive')} out, or give {setting('method', 'rankrc')}.",
            )
        return level_target(found, self.levels)

    def fit(self, rows: EncodedRows, terms: Terms, notes: list[str]) -> OrdinalRankRC:
        """Fit with cross-validation where there are rows for it."""
        majority = np.argmax(np.bincount(rows.y, rows.weight))
        n_rare = int((rows.y != majority).sum())
        check_kernel_memory(
            n_rare, rows.X.dtype.itemsize, terms.memory, "rows outside the majority level"
        )
        # Whichever levels these rows have.
        shared = {"levels": list(range(rows.n_codes))} | self.given(n_rare, terms)
        if terms.folds < 2:
            lam = self.lam_unchosen("rows for cross-validation: the thresholds", notes)
            return rows.fit(OrdinalRankRC(lam=lam, **shared))
        search = OrdinalRankRCCV(self.lams(), cv=rows.cv(terms), **shared)
        return cast(OrdinalRankRC, rows.fit(search).best_estimator_)


def choose_landmarks(n_rare: int) -> tuple[str, int]:
    """Return which rows carry a model of so many rare rows, as `RankRC` names them."""
    if n_rare > MOST_RARE_LANDMARKS:
        return "rare", MOST_RARE_LANDMARKS
    return "rare+majority", MAJORITY_LANDMARKS


def n_landmarks(n_rare: int) -> int:
    """How many they are at most."""
    rule, count = choose_landmarks(n_rare)
    return n_rare + count if rule == "rare+majority" else count


def check_kernel_memory(
    n_rare: int, item: int, allowed: int, which: str = "rare rows", instead: str = ""
) -> None:
    """Raise `InputError` when what the solver holds whole does not fit: kernel and factors.

    Of `n_rare` distinct rows, with `item` bytes a number; `instead` is another way out.
    """
    needed = sum(held_whole_bytes(n_landmarks(n_rare), n_rare, item))
    if needed > allowed:
        raise ErrorKind.MEMORY.error(
            f"The kernel of {n_rare:,} distinct {which} with their landmarks takes "
            f"{size_text(needed)}; {size_text(allowed)} are left for it.",
            f"Raise {setting('kernel_memory')}, {'' if instead else 'or '}fit on a sample of the "
            "rows" + (f", or {instead}." if instead else "."),
        )


def kernel_seconds(size: TableSize, n_landmarks: int, n_solutions: int, memory: int) -> float:
    """About how many seconds it takes, for tables that take minutes or more: to a factor of a few.

    `n_solutions` is folds times lams. Kernel blocks that do not fit into `memory` bytes are worked
    out again in every pass.
    """
    entries = float(size.n_rows) * n_landmarks
    passes = _LEAST_PASSES * (_MANY_ROWS / size.n_rows) ** 0.5
    questions = n_solutions * min(max(passes, _LEAST_PASSES), _MOST_PASSES)
    again = max(0.0, 1.0 - memory / (_ENTRY_BYTES * entries))
    times = 1.0 + again * questions / _AT_ONCE
    entry = _ENTRY + (_STORED if size.is_sparse else _FEATURE) * size.n_columns
    return 1e-9 * entries * (_QUESTION * questions + entry * times)


def duration_text(seconds: float) -> str:
    """A rough length of time in words.

    >>> duration_text(2100), duration_text(9000), duration_text(400_000)
    ('about 35 minutes', 'about 2.5 hours', 'about 5 days')
    """
    if seconds < 5400:
        return f"about {max(1, round(seconds / 300)) * 5} minutes"
    if seconds < 36 * 3600:
        return f"about {round(2 * seconds / 3600) / 2:g} hours"
    return f"about {round(seconds / 86400):,} days"
