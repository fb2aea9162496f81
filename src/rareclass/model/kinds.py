"""Kinds of objects in a model file, and types in files that skops makes of estimators.

A model file holds names of ours and no module paths, so that moving a class changes this table and
no file. A class is listed here only after a look at what building one does: nothing but setting
attributes.
"""

from collections.abc import Iterator
from importlib import import_module
from inspect import isclass
from pkgutil import walk_packages

from rareclass.stored import Kinds

STORED: Kinds = {
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


def our_types() -> list[str]:
    """Return the full names of this package's classes that a model file may hold."""
    return [place.replace(":", ".") for place in STORED.values()]


# Of other packages, which parameters and fitted attributes of ours may be.
_FOREIGN_TYPES = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
)
# Rooms whose classes are estimators, their parameters and what they learn.
_ROOMS = ("decide", "ensemble", "folds", "hyperball", "kernels", "moments", "online", "ranking")
# With one of these a class says itself what building, or dropping, an object does.
_ACTING = ("__reduce__", "__reduce_ex__", "__setstate__", "__del__")


def _of_estimators() -> Iterator[str]:
    """Yield the full names of classes of these rooms whose building only sets attributes."""
    for room in _ROOMS:
        package = import_module(f"rareclass.{room}")
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            try:
                module = import_module(found.name)
            except ImportError:  # of an extra that is not installed
                continue
            for name, each in vars(module).items():
                is_here = isclass(each) and each.__module__ == found.name
                if is_here and not any(method in vars(each) for method in _ACTING):
                    yield f"{found.name}.{name}"


SKOPS_TRUSTED: tuple[str, ...] = tuple(
    sorted(
        {
            *our_types(),
            *_FOREIGN_TYPES,
            *_of_estimators(),
            "rareclass.findings.Finding",
            "rareclass.metrics.intervals.Interval",
        }
    )
)
"""Names of all types in files of this package's estimators that skops does not trust by itself.

For ``skops.io.load(file, trusted=rareclass.SKOPS_TRUSTED)``, for MLflow, and whatever else saves
estimators with skops. Building any of these sets attributes; functions and kernels of your own are
not on the list. A model file of ``rareclass fit`` has a form of its own: `rareclass.load` opens it.
"""
