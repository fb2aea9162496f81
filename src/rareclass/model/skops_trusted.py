"""Types in files that skops makes of learned estimators: what `skops.io.load` is to trust."""

from rareclass.model.kinds import our_types

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
    "rareclass.decide.calibration.isotonic.VennAbersMap",
    "rareclass.decide.threshold_rule.ChosenThreshold",
    "rareclass.decide.decision_classifier.DecisionClassifier",
    "rareclass.decide.threshold_rule.ChosenBand",
    "rareclass.decide.threshold_rule.ReviewBand",
    "rareclass.decide.constraints.GreatestFBeta",
    "rareclass.decide.constraints.LeastCost",
    "rareclass.decide.constraints.AtMostAlerts",
    "rareclass.decide.constraints.AtMostAlertsADay",
    "rareclass.decide.constraints.AtLeastPrecision",
    "rareclass.decide.constraints.AtLeastRecall",
    "rareclass.decide.constraints.AtMostFalsePositiveRate",
    "rareclass.decide.threshold_rule.ThresholdRule",
    "rareclass.ensemble.members.boosters.CatBoost",
    "rareclass.ensemble.members.boosters.LightGBM",
    "rareclass.ensemble.members.boosters.XGBoost",
    "rareclass.ensemble.members.machines.GaussianOnNumbers",
    "rareclass.ensemble.members.machines.GaussianOnTails",
    "rareclass.ensemble.members.machines.LaplaceOnQuantiles",
    "rareclass.ensemble.members.machines.LaplaceOnTails",
    "rareclass.ensemble.members.machines.LogisticOnIndicators",
    "rareclass.ensemble.members.machines.LogisticOnQuantiles",
    "rareclass.ensemble.members.machines.MomentMember",
    "rareclass.ensemble.members.scikit_learn.BalancedForest",
    "rareclass.ensemble.members.scikit_learn.DeepHistogramBoosting",
    "rareclass.ensemble.members.scikit_learn.ExtraTrees",
    "rareclass.ensemble.members.scikit_learn.HistogramBoosting",
    "rareclass.ensemble.members.scikit_learn.RandomForest",
    "rareclass.ensemble.members.scikit_learn.SlowHistogramBoosting",
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
    "rareclass.metrics.interval.Interval",
    "rareclass.moments.mibc_cv.MIBCCV",
    "rareclass.moments.moments.Moments",
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
    "rareclass.online.moments.ClassMoments",
    "rareclass.online.moments.LowRankMoments",
    "rareclass.online.moments.LowRankState",
    "rareclass.online.moments.SplitWeights",
    "rareclass.online.oam.OAM",
    "rareclass.online.oam.OAMState",
    "rareclass.online.opauc.MomentState",
    "rareclass.online.opauc.OPAUC",
    "rareclass.online.univariate.UniExp",
    "rareclass.online.univariate.UniExpState",
    "rareclass.ranking.losses.majority_outer.PartialAUC",
    "rareclass.ranking.ordinal_rankrc.OrdinalRankRCCV",
    "rareclass.ranking.rankrc.RankSVM",
    "rareclass.ranking.rankrc_cv.RankRCCV",
    "rareclass.ranking.stochastic.feeding.Progress",
    "rareclass.ranking.stochastic.feeding.Published",
    "rareclass.ranking.stochastic.feeding.Reservoir",
    "rareclass.ranking.stochastic.feeding.State",
    "rareclass.ranking.stochastic.learner.LandmarkSpace",
    "rareclass.ranking.stochastic.learner.HeldRare",
    "rareclass.ranking.stochastic.learner.LearnedFunction",
    "rareclass.ranking.stochastic.learner.RunningModel",
    "rareclass.ranking.stochastic.stochastic_rankrc.StochasticRankRC",
    "rareclass.ranking.stochastic.weighted_rows.WeightedRows",
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
