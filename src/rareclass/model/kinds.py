"""Kinds of objects in a model file: the name that a file has for a class, and where the class is.

A file holds names of ours and no module paths, so that moving a class changes this table and no
file. A class is listed here only after a look at what building one does: nothing but setting
attributes.
"""

from typing import Any

from scipy import sparse

from rareclass.stored import Codec, Kinds

_OURS = {
    "ball": "rareclass.hunt.sureness:PlainBall",
    "ball counts": "rareclass.hunt.sureness:CumulativeCounts",
    "ball order": "rareclass.hunt.sureness:ListOrder",
    "balls": "rareclass.hunt.sureness:HuntBalls",
    "beta map": "rareclass.decide.calibration.calibration_map:BetaMap",
    "bounded numbers": "rareclass.encoding.bounded_numbers:BoundedNumbers",
    "calibration": "rareclass.decide.calibration.calibration:Calibration",
    "category statistics": "rareclass.encoding.log_odds:CategoryStatistics",
    "column": "rareclass.tables.columns:Column",
    "combination": "rareclass.ensemble.rare_classifier:RareClassifier",
    "coordinate": "rareclass.encoding.hunt:Coordinate",
    "dense view": "rareclass.encoding.views:DenseView",
    "false-positive rate": "rareclass.ensemble.score_functions:FalsePositiveRate",
    "hunt encoder": "rareclass.encoding.hunt:HuntEncoder",
    "hyperplane": "rareclass.moments.solution:Hyperplane",
    "isotonic map": "rareclass.decide.calibration.isotonic:IsotonicMap",
    "isotonic map of parts": "rareclass.decide.calibration.isotonic:IsotonicOfParts",
    "kernel function": "rareclass.ensemble.score_functions:KernelFunction",
    "known codes": "rareclass.encoding.known_levels:KnownCodes",
    "known words": "rareclass.encoding.known_levels:KnownWords",
    "level odds": "rareclass.encoding.encoders:LevelOdds",
    "level calibration": "rareclass.decide.calibration.calibration:LevelCalibration",
    "linear function": "rareclass.ensemble.score_functions:LinearFunction",
    "member": "rareclass.ensemble.score_functions:LearnedMember",
    "mibc": "rareclass.moments.mibc:MIBC",
    "newton step": "rareclass.ranking.solvers.newton:Step",
    "ordinal rankrc": "rareclass.ranking.ordinal_rankrc:OrdinalRankRC",
    "pair statistics": "rareclass.encoding.log_odds:PairStatistics",
    "pooled map": "rareclass.decide.calibration.calibration:PooledMap",
    "rankrc": "rareclass.ranking.rankrc:RankRC",
    "rare cases": "rareclass.model.facts:RareCases",
    "recurring dates": "rareclass.encoding.dates_and_texts:RecurringDates",
    "scaled columns": "rareclass.encoding.views:CentredColumns",
    "score scale": "rareclass.decide.calibration.calibration_map:ScoreScale",
    "scored rows": "rareclass.model.facts:ScoredRows",
    "share of cases": "rareclass.hunt.sureness:ShareOfCases",
    "sparse encoder": "rareclass.encoding.encoders:SparseEncoder",
    "sparse view": "rareclass.encoding.views:SparseView",
    "sure key": "rareclass.hunt.sureness:SureKey",
    "table encoder": "rareclass.encoding.encoders:TableEncoder",
    "table statistics": "rareclass.encoding.table_statistics:TableStatistics",
    "text components": "rareclass.encoding.dates_and_texts:TextComponents",
    "tree sum": "rareclass.ensemble.tree_sum:TreeSum",
    "typed columns": "rareclass.encoding.encoders:TypedColumns",
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
        "csr array": _csr_codec(sparse.csr_array),
        "csr matrix": _csr_codec(sparse.csr_matrix),
    },
)
"""The kinds of a model file."""


def our_types() -> list[str]:
    """Return the full names of this package's classes that a model file may hold."""
    return [place.replace(":", ".") for place in _OURS.values()]
