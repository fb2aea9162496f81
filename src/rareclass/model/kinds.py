"""Kinds of objects in a model file, and types in files that skops makes of estimators.

A model file holds names of ours and no module paths, so that moving a class changes this table and
no file. A class is listed here only after a look at what building one does: nothing but setting
attributes.
"""

from typing import Any

from scipy import sparse

from rareclass.stored import Codec, Kinds

_OURS = {
    "beta map": "rareclass.decide.calibration.calibration_map:BetaMap",
    "bounded numbers": "rareclass.encoding.bounded_numbers:BoundedNumbers",
    "calibration": "rareclass.decide.calibration.calibration:Calibration",
    "case score": "rareclass.hunt.case_score:CaseScore",
    "category statistics": "rareclass.encoding.log_odds:CategoryStatistics",
    "class ranking": "rareclass.ensemble.which_class:ClassRanking",
    "column": "rareclass.tables.columns:Column",
    "combination": "rareclass.ensemble.combined_ranking:CombinedRanking",
    "coordinate": "rareclass.encoding.hunt:Coordinate",
    "cumulative counts": "rareclass.hunt.sureness:CumulativeCounts",
    "dense view": "rareclass.encoding.views:DenseView",
    "false-positive rate": "rareclass.ensemble.score_functions:FalsePositiveRate",
    "hunt encoder": "rareclass.encoding.hunt:HuntEncoder",
    "isotonic map": "rareclass.decide.calibration.isotonic:IsotonicMap",
    "isotonic map of parts": "rareclass.decide.calibration.isotonic:IsotonicOfParts",
    "kernel function": "rareclass.ensemble.score_functions:KernelFunction",
    "kernel ranking": "rareclass.estimators.rankings:KernelRanking",
    "known codes": "rareclass.encoding.known_levels:KnownCodes",
    "known words": "rareclass.encoding.known_levels:KnownWords",
    "label block": "rareclass.encoding.views:LabelBlock",
    "label statistics": "rareclass.encoding.label_statistics:LabelStatistics",
    "level odds": "rareclass.encoding.encoders:LevelOdds",
    "level calibration": "rareclass.decide.calibration.calibration:LevelCalibration",
    "linear function": "rareclass.ensemble.score_functions:LinearFunction",
    "linear ranking": "rareclass.estimators.rankings:LinearRanking",
    "list order": "rareclass.hunt.sureness:ListOrder",
    "mean function": "rareclass.ensemble.score_functions:MeanFunction",
    "member": "rareclass.ensemble.score_functions:LearnedMember",
    "pair statistics": "rareclass.encoding.log_odds:PairStatistics",
    "pooled map": "rareclass.decide.calibration.calibration:PooledMap",
    "rare cases": "rareclass.model.facts:RareCases",
    "rare class scores": "rareclass.model.facts:RareClassScores",
    "recurring dates": "rareclass.encoding.dates_and_texts:RecurringDates",
    "scaled columns": "rareclass.encoding.views:CentredColumns",
    "score scale": "rareclass.decide.calibration.calibration_map:ScoreScale",
    "scored rows": "rareclass.model.facts:ScoredRows",
    "share of cases": "rareclass.hunt.sureness:ShareOfCases",
    "sparse encoder": "rareclass.encoding.encoders:SparseEncoder",
    "sparse view": "rareclass.encoding.views:SparseView",
    "table encoder": "rareclass.encoding.encoders:TableEncoder",
    "table statistics": "rareclass.encoding.table_statistics:TableStatistics",
    "text components": "rareclass.encoding.dates_and_texts:TextComponents",
    "tree sum": "rareclass.ensemble.tree_sum:TreeSum",
    "typed columns": "rareclass.encoding.encoders:TypedColumns",
    "which class": "rareclass.ensemble.which_class:WhichClass",
}
_SPARSE = {
    "csr array": "scipy.sparse._csr:csr_array",
    "csr matrix": "scipy.sparse._csr:csr_matrix",
}


def _csr_state(matrix: Any) -> dict[str, Any]:
    return {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": tuple(int(n) for n in matrix.shape),
    }


def _csr_codec(make: Any) -> Codec:
    def from_state(state: dict[str, Any]) -> Any:
        matrix = make((state["data"], state["indices"], state["indptr"]), shape=state["shape"])
        matrix.check_format(full_check=True)
        return matrix

    return Codec(_csr_state, from_state)


STORED = Kinds(
    places=_OURS | _SPARSE,
    codecs={
        "csr array": _csr_codec(lambda *parts, **shape: sparse.csr_array(*parts, **shape)),
        "csr matrix": _csr_codec(lambda *parts, **shape: sparse.csr_matrix(*parts, **shape)),
    },
)
"""The kinds of a model file."""


def our_types() -> list[str]:
    """Return the full names of this package's classes that a model file may hold."""
    return [place.replace(":", ".") for place in _OURS.values()]


# Of other packages, which parameters and fitted attributes of ours may be.
_FOREIGN_TYPES = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
)
# By the module that they stand in. A type is named here only after a look at what building one
# does: it sets attributes, and calls nothing that a file names.
_OF_ESTIMATORS = (
    "rareclass.folds.score_scale.ScoreMap",
    "rareclass.decide.calibrated_ranker.CalibratedRanker",
    "rareclass.decide.calibrated_ranker._FoldScorer",
    "rareclass.decide.calibration.calibration_map.LogisticMap",
    "rareclass.decide.chosen_threshold.ChosenThreshold",
    "rareclass.decide.decision_classifier.DecisionClassifier",
    "rareclass.decide.threshold_rule.ChosenBand",
    "rareclass.decide.threshold_rule.ReviewBand",
    "rareclass.decide.constraints.AsManyAsRare",
    "rareclass.decide.constraints.GreatestFBeta",
    "rareclass.decide.constraints.LeastCost",
    "rareclass.decide.alert_budget.AtMostAlerts",
    "rareclass.decide.alert_budget.AtMostAlertsAPeriod",
    "rareclass.decide.alert_budget.PeriodBudget",
    "rareclass.decide.constraints.AtLeastPrecision",
    "rareclass.decide.constraints.AtLeastRecall",
    "rareclass.decide.constraints.AtMostFalsePositiveRate",
    "rareclass.decide.threshold_rule.ThresholdRule",
    "rareclass.ensemble.members.machines.GaussianOnTails",
    "rareclass.ensemble.members.machines.LaplaceOnQuantiles",
    "rareclass.ensemble.members.machines.LogisticOnIndicators",
    "rareclass.ensemble.members.machines.LogisticOnQuantiles",
    "rareclass.ensemble.members.machines.MomentMember",
    "rareclass.ensemble.members.trees.CatBoost",
    "rareclass.ensemble.members.trees.DeepHistogramBoosting",
    "rareclass.ensemble.members.trees.ExtraTrees",
    "rareclass.ensemble.members.trees.HistogramBoosting",
    "rareclass.ensemble.members.trees.SlowHistogramBoosting",
    "rareclass.ensemble.rare_classifier.RareClassifier",
    "rareclass.findings.Finding",
    "rareclass.folds.splitters.RareGroupKFold",
    "rareclass.folds.splitters.RareStratifiedKFold",
    "rareclass.folds.splitters.RareTimeSplit",
    "rareclass.hyperball.ball.Ball",
    "rareclass.hyperball.pool.Background",
    "rareclass.hyperball.problem.InputSpace",
    "rareclass.hyperball.problem.KernelSpace",
    "rareclass.hyperball.rach.RACH",
    "rareclass.hyperball.rach_cv.RACHCV",
    "rareclass.kernels.expansion.KernelExpansion",
    "rareclass.kernels.kernels.FeatureScaled",
    "rareclass.kernels.kernels.Gaussian",
    "rareclass.kernels.kernels.Laplace",
    "rareclass.kernels.kernels.Linear",
    "rareclass.kernels.kernels.Polynomial",
    "rareclass.metrics.intervals.Interval",
    "rareclass.moments.mibc.MIBC",
    "rareclass.moments.mibc_cv.MIBCCV",
    "rareclass.moments.moments.Moments",
    "rareclass.moments.solution.Hyperplane",
    "rareclass.online.opauc.AdaOAM",
    "rareclass.online.buffers.DenseBuffers",
    "rareclass.online.buffers.SparseBuffers",
    "rareclass.online.cbr.CBR",
    "rareclass.online.cbr.DiagonalState",
    "rareclass.online.cbr.FullState",
    "rareclass.online.feature_maps.FourierFeatures",
    "rareclass.online.mixture.ExpertRecord",
    "rareclass.online.feature_maps.Ranks",
    "rareclass.online.univariate.GaussianState",
    "rareclass.online.univariate.LogisticState",
    "rareclass.online.univariate.OnlineLogistic",
    "rareclass.online.mixture.MixtureState",
    "rareclass.online.mixture.OnlineMixture",
    "rareclass.online.mixture.Stack",
    "rareclass.online.opauc.ClassMoments",
    "rareclass.online.opauc.LowRankState",
    "rareclass.online.oam.OAM",
    "rareclass.online.oam.OAMState",
    "rareclass.online.opauc.MomentState",
    "rareclass.online.opauc.OPAUC",
    "rareclass.online.univariate.UniExp",
    "rareclass.online.univariate.UniExpState",
    "rareclass.ranking.losses.pnorm_push.PNormPush",
    "rareclass.ranking.ordinal_rankrc.OrdinalRankRC",
    "rareclass.ranking.ordinal_rankrc.OrdinalRankRCCV",
    "rareclass.ranking.rankrc.RankRC",
    "rareclass.ranking.rankrc.RankSVM",
    "rareclass.ranking.rankrc_cv.RankRCCV",
    "rareclass.ranking.running_model.RunningModel",
    "rareclass.ranking.stochastic_rankrc.StochasticRankRC",
    "rareclass.ranking.stochastic_rankrc.MiniBatchState",
    "rareclass.ranking.stochastic_rankrc.WeightedRows",
    "rareclass.ranking.solvers.newton.Step",
)

SKOPS_TRUSTED: tuple[str, ...] = tuple(
    sorted(
        {
            *our_types(),
            *_FOREIGN_TYPES,
            *_OF_ESTIMATORS,
        }
    )
)
"""Names of all types in files of this package's estimators that skops does not trust by itself.

For ``skops.io.load(file, trusted=rareclass.SKOPS_TRUSTED)``, for MLflow, and whatever else saves
estimators with skops. Building any of these sets attributes; functions and kernels of your own are
not on the list. A model file of ``rareclass fit`` has a form of its own: `rareclass.load` opens it.
"""
