"""RankRCCV and OrdinalRankRCCV: lam and width of the kernel by cross-validation.

1. with `search_rows`, rows are drawn that choose in place of all
2. rows are prepared once for each width; folds and lams are problems over the same kernel blocks
3. with `max_landmarks`, the lams whose model of all rows uses few enough landmarks
4. the solutions of all folds and lams, in step; their held-out scores
5. the best width and lam (see `estimators.search`)
6. the machine of all rows, with a threshold learned on the held-out scores
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rareclass.errors import ErrorKind
from rareclass.estimators.estimator import read_features
from rareclass.estimators.search import (
    SCORINGS,
    Fold,
    Scoring,
    SearchCV,
    TieBreaker,
    as_scoring,
    make_folds,
)
from rareclass.findings import warn
from rareclass.machine import track
from rareclass.parameters import check_whole, read_numbers, seed_of
from rareclass.ranking.feature_scaling import learn_feature_scales
from rareclass.ranking.machine import KernelMachine
from rareclass.ranking.problem import RankingProblem
from rareclass.ranking.ranking_data import PreparedRanking, RankingData, coefficients_of, prepare
from rareclass.ranking.solve import (
    PAPER_LAMS,
    PENALTIES,
    MachineParameters,
    accuracy_of,
    fit_path,
    learned_machines,
    solve_paths,
    stopped_short,
)
from rareclass.ranking.solvers.newton import PathSettings, Solution, Step
from rareclass.ranking.solvers.proximal_newton import default_lams
from rareclass.ranking.targets import aligned, training_part

# Lams that are solved together on all rows, before it is known whether smaller ones are of use.
_LAMS_AT_ONCE = 8


# Rows, and the folds that they serve: all of them where the folds share the scales of features.
_Groups = list[tuple[RankingData, list[Fold]]]


class _Tried(NamedTuple):
    """Results of one width: solutions of each fold, by lam, and their held-out scores.

    ``scores`` of shape (n_measures, n_folds, n_lams) are by the scoring, and by what decides
    between equals if anything does. ``prepared`` is there where one width alone was tried: kernels
    of several would fill the memory. ``whole`` are the solutions of all rows, where they were
    needed.
    """

    width: float
    lams: list[float]
    solutions: list[list[Solution]]
    scores: np.ndarray
    tol: float
    prepared: PreparedRanking | None
    whole: list[Solution] | None


class KernelSearch(MachineParameters, ClassNamePrefixFeaturesOutMixin, TransformerMixin, SearchCV):
    """The search over a machine's lam and width of the kernel."""

    _machine: ClassVar[type[KernelMachine]]
    _scorings: ClassVar[Mapping[str, Scoring]]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose lam by cross-validation, then fit on all rows, as `RankRC.fit` does."""
        machine = self._model(self._machine)
        machine._check_parameters([])
        lams = None if self.lams is None else read_numbers("lams", self.lams)
        factors = [1.0] if self.widths is None else read_numbers("widths", self.widths)
        self._check_parameters()
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
        groups = self._sharing_scales(searched, folds)
        # 2. to 4.
        widths = [factor * all_rows.width for factor in factors]
        tried = [self._try(searched, width, lams, groups, measures) for width in widths]
        # 5.
        best, place = self._store_results(tried)
        self.feature_scales_ = all_rows.scales
        self.__dict__.update(all_rows.target.attributes)
        # 6.
        if self.refit:
            self.best_estimator_ = self._refit(all_rows, searched, groups, best, place)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Nyström features of every row by the best model; see `RankRC.transform`."""
        check_is_fitted(self)
        return self._best.transform(X)

    @property
    def _n_features_out(self) -> int:
        return self._best._n_features_out

    def _searched(self, all_rows: RankingData) -> RankingData:
        """The rows that choose; what is drawn for them is drawn once."""
        seed = seed_of(self.random_state)
        if self.widths is not None:
            # Every width has the same landmarks.
            settings = replace(all_rows.settings, random_state=seed)
            all_rows = replace(all_rows, settings=settings)
        if self.search_rows is None:
            return all_rows
        return all_rows.drawn(self.search_rows, seed)

    def _sharing_scales(self, rows: RankingData, folds: list[Fold]) -> _Groups:
        """All folds with the rows; or each with the scales of the features that it learns."""
        if rows.scales is None:
            return [(rows, folds)]
        parts = [replace(rows, target=training_part(rows.target, fold.held_out)) for fold in folds]
        learned = [learn_feature_scales(part, self.eps, self.verbose) for part in parts]
        return [
            (replace(rows, scales=own), [fold]) for own, fold in zip(learned, folds, strict=True)
        ]

    def _try(
        self,
        rows: RankingData,
        width: float,
        lams: list[float] | None,
        groups: _Groups,
        measures: Sequence[Scoring],
    ) -> _Tried:
        """The lams with one width."""
        prepared = prepare(replace(rows, width=width), several=True)
        coordinates, is_part = PENALTIES[self.penalty], self.search_rows is not None
        accuracy = accuracy_of(self, prepared, is_part)
        on_all_rows = partial(prepared.problem, 1.0, coordinates=coordinates)
        if lams is None:
            lams = list(default_lams(on_all_rows()) if self.penalty == "l1" else PAPER_LAMS)
        whole: list[Solution] | None = None
        if self.max_landmarks is not None:
            lams, whole = self._small_enough(prepared, on_all_rows, lams, accuracy.tol)
        total = len(lams) * sum(len(folds) for _, folds in groups)
        with track("Choosing lam", total, self.verbose) as advance:
            solutions: list[list[Solution]] = []
            scores = []

            def report(number: int, lam: float, step: Step) -> None:
                fold = len(solutions) + number + 1
                advance(0, f"fold {fold}, lam {lam:.3g}, iteration {step.iteration}")

            for data, folds in groups:
                of = prepared if data is rows else prepare(replace(data, width=width), several=True)
                solved = solve_paths(
                    [
                        partial(of.problem, 1.0, fold.held_out, coordinates=coordinates)
                        for fold in folds
                    ],
                    lams,
                    accuracy._replace(done=lambda: advance(1)),
                    of.at_once,
                    report,
                    self.penalty,
                )
                solutions += solved
                scores.append(of.fold_scores(folds, solved, *measures))
        kept = prepared if self.widths is None else None
        measured = np.concatenate(scores, axis=1)
        return _Tried(width, lams, solutions, measured, accuracy.tol, kept, whole)

    @property
    def _between_equals(self) -> tuple[str, float] | None:
        """The measure that decides between equals, and how far below the best they may be."""
        return None

    def _check_parameters(self) -> None:
        """Raise `ValueError` on parameters of the search, naming parameter and range."""
        if self.search_rows is not None:
            allowed = "a whole number of at least 100, or None"
            check_whole("search_rows", self.search_rows, allowed, 100)
            rule = self.landmarks
            if not isinstance(rule, (str, tuple, int, np.integer)) and np.ndim(rule) == 1:
                raise ErrorKind.COMBINATION.error(
                    "landmarks holds row numbers, of which search_rows draws some: pass the rows "
                    "themselves, as a matrix."
                )
        most = self.max_landmarks
        if most is None:
            return
        check_whole("max_landmarks", most, "a whole number above 0, or None")
        if self.widths is not None or self.search_rows is not None:
            raise ErrorKind.COMBINATION.error(
                f"max_landmarks={most} counts landmarks of models of all rows: choose a width, or "
                "on search_rows, without it."
            )
        if self.penalty != "l1":
            raise ErrorKind.COMBINATION.error(
                f"max_landmarks={most} needs penalty='l1': with {self.penalty!r} every landmark is "
                f"used. Pass landmarks=('rare', {most}) for as many of them."
            )

    def _small_enough(
        self,
        prepared: PreparedRanking,
        on_all_rows: Callable[[], RankingProblem],
        lams: list[float],
        tol: float,
    ) -> tuple[list[float], list[Solution]]:
        """The lams that use few enough landmarks on all rows, and the solutions there."""
        lams = sorted(lams, reverse=True)
        path: list[Solution] = []
        with track("Counting landmarks", None, self.verbose) as advance:
            for start in range(0, len(lams), _LAMS_AT_ONCE):
                (more,) = solve_paths(
                    [on_all_rows],
                    lams[start : start + _LAMS_AT_ONCE],
                    PathSettings(tol, self.max_iter),
                    prepared.at_once,
                    lambda _, lam, step: advance(1, f"lam {lam:.3g}, iteration {step.iteration}"),
                    self.penalty,
                )
                path += more
                # From here on there are only more of them.
                if (_sizes(more) > self.max_landmarks).all():
                    break
        sizes = _sizes(path)
        kept = np.flatnonzero((sizes > 0) & (sizes <= self.max_landmarks))
        if not len(kept):
            used = np.where(sizes > 0, sizes, np.inf)
            fewest = int(used.argmin())
            found = (
                f"lam={lams[fewest]:.3g} uses {used[fewest]:.0f}, the fewest. Raise max_landmarks, "
                "or pass more lams around it"
                if np.isfinite(used[fewest])
                else f"even the lowest, {lams[-1]:.3g}, leaves none. Pass lower lams"
            )
            raise ErrorKind.NOT_REACHABLE.error(
                f"no lam leaves 1 to {self.max_landmarks} landmarks: {found}."
            )
        return [lams[k] for k in kept], [path[k] for k in kept]

    def _store_results(self, tried: list[_Tried]) -> tuple[_Tried, int]:
        """Keep the results of all candidates; return the best width's, and the place of its lam."""
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
        scores, *others = np.concatenate([each.scores for each in tried], axis=2)
        tie = None
        if self._between_equals is not None:
            name, within = self._between_equals
            tie = TieBreaker(name, others[0].mean(axis=0), within)
        # Among equals the smoothest model: the widest kernel, and the largest lam.
        place = np.argsort(np.lexsort((-named["lam"], -named["width"])))
        best = self._choose(named, scores, place, more, tie)
        of, number = [(each, k) for each in tried for k in range(len(each.lams))][best]
        self.best_lam_, self.best_width_ = of.lams[number], of.width
        return of, number

    def _results_of(self, tried: _Tried) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Parameters of the candidates of one width, and their results other than scores."""
        solutions = tried.solutions
        short = [[stopped_short(s, tried.tol) for s in path] for path in solutions]
        named = {"lam": np.array(tried.lams), "width": np.full(len(tried.lams), tried.width)}
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
        groups: _Groups,
        tried: _Tried,
        place: int,
    ) -> KernelMachine:
        """The best model of all rows, its threshold from held-out scores of its folds."""
        chosen = {"lam": self.best_lam_}
        if self.widths is not None:
            chosen["width"] = tried.width
        model = self._model(self._machine, **chosen)
        width = tried.width
        of_folds = tried.prepared or prepare(replace(searched, width=width), several=True)
        prepared = of_folds
        if self.search_rows is not None:
            prepared = prepare(replace(all_rows, width=width))
        if tried.whole is None:
            (learned,) = fit_path(prepared, [model.lam], model)
        else:
            problem = prepared.problem(1.0, coordinates=PENALTIES[self.penalty])
            solution = tried.whole[place]
            (learned,) = learned_machines(prepared, problem, [model.lam], [solution], model)
        paths, parts = iter(tried.solutions), []
        for data, folds in groups:
            of = of_folds if data is searched else prepare(replace(data, width=width), several=True)
            for fold in folds:
                coefficients = coefficients_of([next(paths)[place]])
                parts.append(of.scored(coefficients, tested=fold.tested))
        # Scores of training rows are no guide: a held row is a landmark of its own model.
        foresees = accuracy_of(model, prepared).foresees
        score = prepared.scored_part if foresees else prepared.scored
        held_out_rows = aligned(parts, score(coefficients_of([learned.solution])))
        threshold = prepared.data.target.threshold(held_out_rows, prepared.loss)
        model._keep(prepared, learned._replace(threshold=threshold))
        calibration = prepared.data.target.calibration(held_out_rows)
        if calibration is not None:
            model.calibration_ = calibration
        return model


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
