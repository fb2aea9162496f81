"""Types in files that skops makes of learned estimators: what `skops.io.load` is to trust."""

from rareclass.model.model_file import TRUSTED_TYPES

# By the module that they stand in. A type is named here only after a look at what building one
# does: it sets attributes, and calls nothing that a file names.
_OF_ESTIMATORS = {
    "decide": (
        "calibrated_ranker.CalibratedRanker",
        "calibrated_ranker._FoldScorer",
        "calibration.isotonic.VennAbersMap",
        "calibration.parametric.LogisticMap",
        "constraints.AtLeastPrecision",
        "constraints.AtLeastRecall",
        "constraints.AtMostAlerts",
        "constraints.AtMostAlertsADay",
        "constraints.AtMostFalsePositiveRate",
        "constraints.GreatestFBeta",
        "constraints.LeastCost",
        "decision_classifier.DecisionClassifier",
        "threshold_rule.ChosenBand",
        "threshold_rule.ChosenThreshold",
        "threshold_rule.ReviewBand",
        "threshold_rule.ThresholdRule",
    ),
    "ensemble": (
        "members.boosters.CatBoost",
        "members.boosters.LightGBM",
        "members.boosters.XGBoost",
        "members.kernel_machine.GaussianOnNumbers",
        "members.kernel_machine.GaussianOnTails",
        "members.kernel_machine.LaplaceOnQuantiles",
        "members.kernel_machine.LaplaceOnTails",
        "members.linear.LogisticOnIndicators",
        "members.linear.LogisticOnQuantiles",
        "members.linear.MomentMember",
        "members.scikit_learn.BalancedForest",
        "members.scikit_learn.DeepHistogramBoosting",
        "members.scikit_learn.ExtraTrees",
        "members.scikit_learn.HistogramBoosting",
        "members.scikit_learn.RandomForest",
        "members.scikit_learn.SlowHistogramBoosting",
    ),
    "findings": ("Finding",),
    "hyperball": (
        "ball.Ball",
        "pool.Background",
        "rach.RACH",
        "rach_cv.RACHCV",
        "spaces.InputSpace",
        "spaces.KernelSpace",
    ),
    "kernels": (
        "expansion.KernelExpansion",
        "kernels.FeatureScaled",
        "kernels.Gaussian",
        "kernels.Laplace",
        "kernels.Linear",
        "kernels.Polynomial",
    ),
    "metrics": ("interval.Interval",),
    "moments": ("mibc_cv.MIBCCV", "moments.Moments"),
    "online": (
        "adaoam.AdaOAM",
        "adaoam.AdaptiveState",
        "buffers.DenseBuffers",
        "buffers.SparseBuffers",
        "cbr.CBR",
        "cbr.DiagonalState",
        "cbr.FullState",
        "feature_maps.FourierFeatures",
        "feature_maps.Ranks",
        "logistic.GaussianState",
        "logistic.LogisticState",
        "logistic.OnlineLogistic",
        "mixture.ExpertRecord",
        "mixture.MixtureState",
        "mixture.OnlineMixture",
        "mixture.Stack",
        "moments.ClassMoments",
        "moments.LowRankMoments",
        "moments.LowRankState",
        "moments.SplitWeights",
        "oam.OAM",
        "oam.OAMState",
        "opauc.MomentState",
        "opauc.OPAUC",
        "uniexp.UniExp",
        "uniexp.UniExpState",
    ),
    "ranking": (
        "losses.partial_auc.PartialAUC",
        "ordinal_rankrc_cv.OrdinalRankRCCV",
        "rankrc.RankSVM",
        "rankrc_cv.RankRCCV",
        "stochastic.feeding.Reservoir",
        "stochastic.feeding.State",
        "stochastic.landmark_space.LandmarkSpace",
        "stochastic.learner.Learned",
        "stochastic.mini_batch.HeldRare",
        "stochastic.published.Progress",
        "stochastic.published.Published",
        "stochastic.running_model.RunningModel",
        "stochastic.stochastic_rankrc.StochasticRankRC",
        "stochastic.weighted_rows.WeightedRows",
    ),
    "folds": (
        "score_scale.ScoreMap",
        "splitters.RareGroupKFold",
        "splitters.RareStratifiedKFold",
        "splitters.RareTimeSplit",
    ),
}

SKOPS_TRUSTED: tuple[str, ...] = tuple(
    sorted(
        {
            *TRUSTED_TYPES,
            # scikit-learn's own, which skops does not trust by itself
            "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
            *(
                f"rareclass.{room}.{name}"
                for room, names in _OF_ESTIMATORS.items()
                for name in names
            ),
        }
    )
)
"""Names of all types in files of this package's estimators that skops does not trust by itself.

For ``skops.io.load(file, trusted=rareclass.SKOPS_TRUSTED)``, for MLflow, and whatever else saves
estimators with skops. Files of ``rareclass fit`` open so, too, though `rareclass.load` says more of
what is wrong with one, and reads those of earlier versions. Building any of these sets attributes;
functions and kernels of your own are not on the list.
"""
