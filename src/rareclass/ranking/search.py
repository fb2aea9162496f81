"""RankRCCV and OrdinalRankRCCV: lam, loss and width of the kernel by cross-validation.

1. with `search_rows`, rows are drawn that choose in place of all; two folds and every second lam
   then tell which widths and losses are the better half, and which lams are near the best
2. rows are prepared once for each width; folds, losses and lams are problems over the same kernel
   blocks
3. with `max_landmarks`, the lams whose model of all rows uses few enough landmarks
4. the solutions of all folds, losses and lams, in step; their held-out scores
5. the best width, loss and lam (see `estimators.search`)
6. the machine of all rows, with a threshold learned on the held-out scores
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rareclass.estimators.estimator import read_features, settings_of
from rareclass.estimators.search import (
    SCORINGS,
    Fold,
    Scoring,
    SearchCV,
    TieBreaker,
    as_scoring,
    best_of,
    make_folds,
)
from rareclass.findings import warn
from rareclass.machine import blas_threads, track
from rareclass.parameters import check_number, check_whole
from rareclass.ranking.feature_scaling import learn_feature_scales
from rareclass.ranking.fitting import (
    PENALTIES,
    SolverSettings,
    check_penalty,
    fit_path,
    learned_machines,
    stopped_short,
)
from rareclass.ranking.losses import LossChoice, as_loss_choice, make_loss
from rareclass.ranking.machine import KernelMachine
from rareclass.ranking.problem import Problem
from rareclass.ranking.ranking_data import PreparedRanking, RankingData, coefficients_of, prepare
from rareclass.ranking.solvers.newton import PathSettings, Solution, Step
from rareclass.ranking.solvers.path import solve_paths
from rareclass.ranking.targets import RankingTarget, aligned

# Lams that are solved together on all rows, before it is known whether smaller ones are of use.
_LAMS_AT_ONCE = 8
# With `search_rows`: folds of the first round, and from how many folds on there is one.
_FIRST_FOLDS, _LEAST_FOLDS = 2, 4
# Of the grid every so many-th lam is tried there; the best and the lams next to it go on.
_LAM_STRIDE, _NEXT = 2, (-1, 0, 1)

Make = Callable[[], Problem]


class _Entry(NamedTuple):
    """Losses and lams to be tried with one width; ``lams`` is None for the whole grid."""

    width: float
    losses: Sequence[LossChoice]
    lams: Sequence[float] | None = None
    lam_stride: int = 1  # every so many-th lam of the grid, from the largest on


class _Tried(NamedTuple):
    """Results of one entry: solutions of each fold, by loss and lam, and their held-out scores.

    ``scores`` of shape (n_measures, n_folds, n_candidates) are by the scoring, and by what decides
    between equals if anything does. ``prepared``, and ``on_all_rows`` that make problems by loss,
    are there where one width alone was tried: kernels of several would fill the memory. ``whole``
    are the solutions of all rows, by loss and lam, where they were needed.
    """

    entry: _Entry
    grid: list[float]  # of which `lams` are some
    lams: list[float]
    solutions: list[list[Solution]]
    scores: np.ndarray
    tol: float
    prepared: PreparedRanking | None
    on_all_rows: list[Make]
    whole: list[Solution] | None


class _Choice(NamedTuple):
    """The best of all that was tried."""

    tried: _Tried
    place: int  # among its candidates
    loss: LossChoice
    lam: float


class KernelSearch(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SearchCV):
    """The search over a machine's loss, lam and width of the kernel."""

    _machine: ClassVar[type[KernelMachine]]
    _scorings: ClassVar[Mapping[str, Scoring]]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose lam by cross-validation, then fit on all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `RankRC.fit`.

        Returns
        -------
        estimator
            This one.
        """
        machine = self._model(self._machine)
        self._check_parameters(machine)
        candidates = self._candidates()
        measures = [as_scoring(self.scoring, self._scorings)]
        if self._between_equals is not None:
            measures.append(SCORINGS[self._between_equals[0]])
        source = read_features(self, X, squares=True)
        all_rows = machine._data(source, y, sample_weight)
        # 1.
        searched = self._searched(all_rows)
        folds = make_folds(
            _within(self.cv, searched.numbers, all_rows.source.n_rows),
            searched.target.labels,
            searched.source.n_rows,
            self.random_state,
            f"{self._machine.__name__} with a lam",
            searched.target.strata(searched.source.n_rows),
        )
        scales = self._scales_of_folds(searched, folds)
        # 2. to 4.
        factors = [1.0] if self.widths is None else np.ravel(self.widths).tolist()
        entries = [_Entry(factor * all_rows.width, candidates) for factor in factors]
        if self.search_rows is not None and len(folds) >= _LEAST_FOLDS:
            first = [entry._replace(lam_stride=_LAM_STRIDE) for entry in entries]
            some = folds[:_FIRST_FOLDS]
            equals = self._between_equals
            entries = _better_half(
                [self._try(searched, one, some, scales, measures) for one in first],
                None if equals is None else equals[1],
            )
        tried = [self._try(searched, entry, folds, scales, measures) for entry in entries]
        # 5.
        choice = self._store_results(tried)
        self.feature_scales_ = all_rows.scales
        self.__dict__.update(all_rows.target.attributes)
        # 6.
        if self.refit:
            self.best_estimator_ = self._refit(all_rows, searched, folds, scales, choice)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Nyström features of every row by the best model; see `RankRC.transform`."""
        check_is_fitted(self)
        return self._best().transform(X)

    @property
    def _n_features_out(self) -> int:
        return self._best()._n_features_out

    def _searched(self, all_rows: RankingData) -> RankingData:
        """The rows that choose; what is drawn for them is drawn once."""
        state = self.random_state
        if state is not None and not isinstance(state, (int, np.integer)):
            state = int(check_random_state(state).randint(2**31))
        if self.widths is not None:
            # Every width has the same landmarks.
            settings = replace(all_rows.settings, random_state=0 if state is None else state)
            all_rows = replace(all_rows, settings=settings)
        if self.search_rows is None:
            return all_rows
        return all_rows.drawn(self.search_rows, 0 if state is None else state)

    def _scales_of_folds(self, rows: RankingData, folds: list[Fold]) -> list[np.ndarray] | None:
        """Learn the scales of the features of each fold from its training rows."""
        if rows.scales is None:
            return None
        targets = [_training_part(rows.target, fold.held_out) for fold in folds]
        settings, source = rows.settings, rows.source
        return [
            learn_feature_scales(settings, source, one, rows.width, self.eps, self.verbose).scales
            for one in targets
        ]

    def _try(
        self,
        rows: RankingData,
        entry: _Entry,
        folds: list[Fold],
        scales: list[np.ndarray] | None,
        measures: Sequence[Scoring],
    ) -> _Tried:
        """Losses and lams with one width."""
        given_losses = [make_loss(c.loss, self.eps, c.params) for c in entry.losses]
        check_penalty(self.penalty, given_losses)
        prepared = prepare(replace(rows, width=entry.width), several=True)
        penalty, is_part = PENALTIES[self.penalty], self.search_rows is not None
        accuracy = settings_of(SolverSettings, self).accuracy(prepared, is_part)
        losses = [prepared.target.loss(loss) for loss in given_losses]

        def problems(of: PreparedRanking, held_out: np.ndarray | None) -> list[Make]:
            coordinates = penalty.coordinates
            return [partial(of.problem, 1.0, held_out, loss, coordinates) for loss in losses]

        on_all_rows = problems(prepared, None)
        given = penalty.lams(on_all_rows) if self.lams is None else np.ravel(self.lams)
        grid = [float(lam) for lam in given]
        lams = list(grid if entry.lams is None else entry.lams)
        if entry.lam_stride > 1:
            lams = sorted(lams, reverse=True)[:: entry.lam_stride]
        whole: list[Solution] | None = None
        if self.max_landmarks is not None:
            lams, whole = self._small_enough(prepared, on_all_rows, lams, accuracy.tol)
        n_losses, total = len(losses), len(folds) * len(losses) * len(lams)
        with blas_threads(1), track("Choosing lam", total, self.verbose) as advance:
            solutions: list[list[Solution]] = []
            scores = []

            def report(number: int, lam: float, step: Step) -> None:
                fold = len(solutions) + number // n_losses + 1
                advance(0, f"fold {fold}, lam {lam:.3g}, iteration {step.iteration}")

            for of, some in _sharing_scales(prepared, rows, entry.width, folds, scales):
                paths = solve_paths(
                    [make for fold in some for make in problems(of, fold.held_out)],
                    lams,
                    accuracy._replace(done=lambda: advance(1)),
                    of.at_once,
                    report,
                    penalty.starts,
                )
                each = range(0, len(paths), n_losses)
                solved = [list(chain(*paths[k : k + n_losses])) for k in each]
                solutions += solved
                scores.append(of.fold_scores(some, solved, *measures))
        tried = _Tried(
            entry,
            grid,
            lams,
            solutions,
            np.concatenate(scores, axis=1),
            accuracy.tol,
            prepared,
            on_all_rows,
            whole,
        )
        return tried if self.widths is None else tried._replace(prepared=None, on_all_rows=[])

    @property
    def _between_equals(self) -> tuple[str, float] | None:
        """The measure that decides between equals, and how far below the best they may be."""
        return None

    def _check_parameters(self, machine: KernelMachine) -> None:
        lams = [] if self.lams is None else [float(lam) for lam in np.ravel(self.lams)]
        if self.lams is not None and not lams:
            raise ValueError("lams is empty: pass at least one number above 0.")
        machine._check_parameters(lams)
        self._check_search()
        most = self.max_landmarks
        if most is None:
            return
        check_whole("max_landmarks", most, "a whole number above 0, or None")
        if self.widths is not None or self.search_rows is not None:
            raise ValueError(
                f"max_landmarks={most} counts landmarks of models of all rows: choose a width, or "
                "on search_rows, without it."
            )
        if not PENALTIES[self.penalty].drops_landmarks:
            raise ValueError(
                f"max_landmarks={most} needs penalty='l1': with {self.penalty!r} every landmark is "
                f"used. Pass landmarks=('rare', {most}) for as many of them."
            )

    def _check_search(self) -> None:
        for factor in [] if self.widths is None else np.ravel(self.widths).tolist():
            check_number("widths", factor, "numbers above 0, times the width")
        if self.widths is not None and not np.size(self.widths):
            raise ValueError("widths is empty: pass at least one number above 0, or None.")
        if self.search_rows is None:
            return
        check_whole("search_rows", self.search_rows, "a whole number of at least 100, or None", 100)
        rule = self.landmarks
        if not isinstance(rule, (str, tuple, int, np.integer)) and np.ndim(rule) == 1:
            raise ValueError(
                "landmarks holds row numbers, of which search_rows draws some: pass the rows "
                "themselves, as a matrix."
            )

    def _candidates(self) -> list[LossChoice]:
        if self.losses is None:
            return [LossChoice(self.loss, self.loss_params)]
        is_list = isinstance(self.losses, Sequence) and not isinstance(self.losses, str)
        if not is_list or not len(self.losses):
            raise ValueError(
                f"losses={self.losses!r} must be a list of at least one loss, or None for `loss`."
            )
        if self.loss_params:
            raise ValueError(
                "loss_params belongs to `loss`; give each loss with its own: "
                '("pnorm_push", {"power": 4}).'
            )
        return [as_loss_choice(given) for given in self.losses]

    def _small_enough(
        self, prepared: PreparedRanking, on_all_rows: Sequence[Make], lams: list[float], tol: float
    ) -> tuple[list[float], list[Solution]]:
        """The lams with which some loss uses few enough landmarks on all rows.

        And the solutions there, by loss and lam.
        """
        lams = sorted(lams, reverse=True)
        paths: list[list[Solution]] = [[] for _ in on_all_rows]
        with blas_threads(1), track("Counting landmarks", None, self.verbose) as advance:
            for start in range(0, len(lams), _LAMS_AT_ONCE):
                more = solve_paths(
                    on_all_rows,
                    lams[start : start + _LAMS_AT_ONCE],
                    PathSettings(tol, self.max_iter),
                    prepared.at_once,
                    lambda _, lam, step: advance(1, f"lam {lam:.3g}, iteration {step.iteration}"),
                    PENALTIES[self.penalty].starts,
                )
                paths = [path + solutions for path, solutions in zip(paths, more, strict=True)]
                # From here on there are only more of them.
                if all((_sizes(solutions) > self.max_landmarks).all() for solutions in more):
                    break
        sizes = np.array([_sizes(path) for path in paths])
        kept = np.flatnonzero(self._is_allowed(sizes).any(axis=0))
        if not len(kept):
            used = np.where(sizes > 0, sizes, np.inf).min(axis=0)
            fewest = int(used.argmin())
            found = (
                f"lam={lams[fewest]:.3g} uses {used[fewest]:.0f}, the fewest. Raise max_landmarks, "
                "or pass more lams around it"
                if np.isfinite(used[fewest])
                else f"even the lowest, {lams[-1]:.3g}, leaves none. Pass lower lams"
            )
            raise ValueError(f"no lam leaves 1 to {self.max_landmarks} landmarks: {found}.")
        return [lams[k] for k in kept], [path[k] for path in paths for k in kept]

    def _is_allowed(self, sizes: np.ndarray) -> np.ndarray:
        """Mask of the models that use few enough landmarks, and some."""
        return (sizes > 0) & (sizes <= self.max_landmarks)

    def _store_results(self, tried: list[_Tried]) -> _Choice:
        """Keep what was found of every candidate, and the best."""
        every = [self._results_of(each) for each in tried]
        n_short = sum(int(more["n_stopped_short"].sum()) for _, more in every)
        if n_short:
            n_solved = sum(each.scores[0].size for each in tried)
            warn(
                f"{n_short} of {n_solved} solutions of the folds stopped short of "
                f"tol={tried[0].tol:.1e}; cv_results_['n_stopped_short'] counts them for each lam. "
                "Raise max_iter or tol, or leave out the smallest lams.",
                ConvergenceWarning,
            )
        named, more = (_joined([pair[k] for pair in every]) for k in (0, 1))
        allowed = None
        if "n_landmarks" in more:
            allowed = np.flatnonzero(self._is_allowed(more["n_landmarks"]))
        scores, *beside = np.concatenate([each.scores for each in tried], axis=2)
        tie = None
        if self._between_equals is not None:
            name, within = self._between_equals
            tie = TieBreaker(name, beside[0].mean(axis=0), within)
        # Among equals the smoothest model: the widest kernel, and the largest lam.
        place = np.argsort(np.lexsort((-named["lam"], -named["width"])))
        best = self._choose(named, scores, place, more, allowed, tie)
        ends = np.cumsum([each.scores.shape[2] for each in tried])
        which = int(np.searchsorted(ends, best, side="right"))
        of = tried[which]
        place = best - int(ends[which]) + of.scores.shape[2]
        number, of_lam = divmod(place, len(of.lams))
        choice = _Choice(of, place, of.entry.losses[number], of.lams[of_lam])
        self.best_lam_, self.best_width_ = choice.lam, of.entry.width
        self.best_loss_, self.best_loss_params_ = choice.loss
        return choice

    def _results_of(self, tried: _Tried) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Parameters of the candidates of one width, and their results beside scores."""
        candidates, solutions = tried.entry.losses, tried.solutions
        n_lams, n_losses = len(tried.lams), len(candidates)
        short = [[stopped_short(s, tried.tol) for s in path] for path in solutions]
        named = {
            "loss": np.repeat([str(candidate) for candidate in candidates], n_lams),
            "lam": np.tile(tried.lams, n_losses),
            "width": np.full(n_lams * n_losses, tried.entry.width),
        }
        more = {
            "n_stopped_short": np.sum(short, axis=0),
            "mean_n_iter": np.mean([[s.n_iter for s in path] for path in solutions], axis=0),
            "mean_passes": np.mean([[s.passes for s in path] for path in solutions], axis=0),
            "mean_n_landmarks": np.mean([_sizes(path) for path in solutions], axis=0),
        }
        if tried.whole is not None:
            more["n_landmarks"] = _sizes(tried.whole)
        return named, more

    def _refit(
        self,
        all_rows: RankingData,
        searched: RankingData,
        folds: list[Fold],
        scales: list[np.ndarray] | None,
        choice: _Choice,
    ) -> KernelMachine:
        """The best model of all rows, its threshold from held-out scores of its folds."""
        tried = choice.tried
        chosen = {"lam": choice.lam, "loss": choice.loss.loss, "loss_params": choice.loss.params}
        if self.widths is not None:
            chosen["width"] = tried.entry.width
        model = self._model(self._machine, **chosen)
        settings = settings_of(SolverSettings, model)
        width = tried.entry.width
        of_folds = tried.prepared or prepare(replace(searched, width=width), several=True)
        prepared = of_folds
        if self.search_rows is not None:
            prepared = prepare(replace(all_rows, width=width))
        loss = prepared.target.loss(make_loss(choice.loss.loss, self.eps, choice.loss.params))
        if tried.whole is None:
            its_own = replace(prepared, loss=loss)
            (learned,) = fit_path(its_own, [model.lam], settings, self._machine.__name__)
        else:
            problem = tried.on_all_rows[choice.place // len(tried.lams)]()
            solution = tried.whole[choice.place]
            (learned,) = learned_machines(prepared, problem, [model.lam], [solution], settings)
        paths, parts = iter(tried.solutions), []
        for of, some in _sharing_scales(of_folds, searched, width, folds, scales):
            for fold in some:
                coefficients = coefficients_of([next(paths)[choice.place]])
                parts.append(of.scored(coefficients, tested=fold.tested))
        # Scores of training rows are no guide: a held row is a landmark of its own model.
        foresees = settings.accuracy(prepared).foresees
        score = prepared.scored_part if foresees else prepared.scored
        held_out_rows = aligned(parts, score(coefficients_of([learned.solution])))
        threshold = prepared.target.threshold(held_out_rows, loss)
        model._keep(prepared, learned._replace(threshold=threshold))
        calibration = prepared.target.calibration(held_out_rows)
        if calibration is not None:
            model.calibration_ = calibration
        return model


def _sharing_scales(
    prepared: PreparedRanking,
    rows: RankingData,
    width: float,
    folds: list[Fold],
    scales: list[np.ndarray] | None,
) -> Iterator[tuple[PreparedRanking, list[Fold]]]:
    """Yield prepared rows and the folds that they serve: all, or each with scales of its own."""
    if scales is None:
        yield prepared, folds
        return
    for fold, own in zip(folds, scales, strict=False):
        yield prepare(replace(rows, width=width, scales=own), several=True), [fold]


def _training_part(target: RankingTarget, held_out: np.ndarray) -> RankingTarget:
    """Return the target of the rows that a fold does not hold out."""
    labels, majority = target.labels, np.asarray(target.labels.majority)
    held, rest = ~held_out[labels.rare], ~held_out[majority]
    weight = labels.majority_weight
    part = target.on_part(
        np.flatnonzero(held),
        labels.rare_weight[held],
        np.ones(np.count_nonzero(rest)) if weight is None else weight[rest],
    )
    numbers: Any = part.labels._replace(rare=labels.rare[held], majority=majority[rest])
    return replace(part, labels=numbers)


def _better_half(tried: Sequence[_Tried], equal_within: float | None) -> list[_Entry]:
    """The better half of the pairs of width and loss, two at least; lams around their best.

    Pairs are as good as their best lam; they come in the order in which the search would choose
    them, one after the other. `equal_within`: the second measure decides between means of the
    first one that are as good as equal, see `TieBreaker`.
    """
    means = np.concatenate([each.scores.mean(axis=1) for each in tried], axis=1)
    rows = [
        (width, loss, lam)
        for width, each in enumerate(tried)
        for loss in range(len(each.entry.losses))
        for lam in range(len(each.lams))
    ]
    width, loss, lam = np.array(rows).T
    pair = np.unique(np.stack([width, loss]), axis=1, return_inverse=True)[1]
    sigma = np.array([each.entry.width for each in tried])
    simplest = np.argsort(np.lexsort((lam, -sigma[width])))
    left, kept = np.arange(len(rows)), []
    n_pairs = int(pair.max()) + 1
    for _ in range(min(n_pairs, max(2, n_pairs // 2))):
        tie = None if equal_within is None else TieBreaker("", means[1, left], equal_within)
        best = left[best_of(means[0, left], simplest[left], tie)]
        kept.append(best)
        left = left[pair[left] != pair[best]]
    entries = []
    for k, each in enumerate(tried):
        own = sorted(place for place in kept if width[place] == k)
        near = {_LAM_STRIDE * lam[place] + step for place in own for step in _NEXT}
        grid = sorted(each.grid, reverse=True)
        lams = [value for number, value in enumerate(grid) if number in near]
        if own:
            losses = [each.entry.losses[loss[place]] for place in own]
            entries.append(_Entry(each.entry.width, losses, lams))
    return entries


def _within(cv: Any, numbers: np.ndarray | None, n_rows: int) -> Any:
    """Folds of all rows as those of the part of them with these numbers; other `cv` as it is."""
    if numbers is None or isinstance(cv, str) or not isinstance(cv, Iterable):
        return cv
    place = np.full(n_rows, -1)
    place[numbers] = np.arange(len(numbers))
    folds = [tuple(place[np.asarray(rows)] for rows in fold) for fold in cv]
    return [tuple(places[places >= 0] for places in fold) for fold in folds]


def _joined(tables: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Columns of one table after the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _sizes(solutions: Sequence[Solution]) -> np.ndarray:
    """Number of landmarks that each solution uses."""
    return np.array([np.count_nonzero(solution.at.coefficients) for solution in solutions])
