"""A learned model as a model of ONNX, to be scored where there is no Python."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rareclass.errors import needed_for
from rareclass.files import replacing
from rareclass.model.model import Model

if TYPE_CHECKING:
    import onnx


def to_onnx(model: Any) -> "onnx.ModelProto":
    """Convert a learned model to ONNX, in double precision. Needs the extra ``rareclass[onnx]``.

    Parameters
    ----------
    model : estimator, Pipeline or Model
        `RankRC`, `RankSVM`, `OrdinalRankRC`, their searches and `StochasticRankRC`, learned from
        dense rows; `MIBC`; the online learners; `RareClassifier`; a pipeline of scikit-learn whose
        last step is one of these; or what `rareclass.load` gave.

    Returns
    -------
    onnx.ModelProto
        Inputs: ``X``, double of shape (n_rows, n_features), where the model was learned from an
        array or is an estimator of numbers; else one input a column of the table, by its name and
        of shape (n_rows, 1): numbers double and NaN where empty, truth values read as numbers 1
        and 0; words strings as the table has them: the graph strips them and knows empty marks and
        the spellings of truth values. "" is empty, too.

        Outputs: ``score``, double of shape (n_rows, 1); ``label`` of shape (n_rows,); and, where
        the model has probabilities, ``probability``, double of shape (n_rows, n_classes) in the
        order of the classes.

    Raises
    ------
    InputError
        Where a part of the model has no form in ONNX, naming it: sparse rows, kernels that are
        functions, columns of dates and texts, several rare classes. Where sample rows with every
        spelling of the columns' cells have other scores by the graph than by the model. Where
        packages of the extra are missing.

    Notes
    -----
    Scores are those of `score_samples` of double rows, but for the last digits: within 1e-6. Where
    the library itself reckons in 32 bits, the graph does not, and they differ by what that rounds:
    kernels of `RareClassifier`, and model files of 100,000 training rows and more.

    A row costs what it does in the library; a batch takes memory for rows times landmarks.

    Examples
    --------
    >>> import numpy as np, onnxruntime
    >>> from rareclass import RankRC, to_onnx
    >>> X = np.array([[0.0], [0.1], [0.2], [1.0]])
    >>> model = RankRC().fit(X, [0, 0, 0, 1])
    >>> session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> [score] = session.run(["score"], {"X": X})
    >>> bool(np.allclose(score[:, 0], model.score_samples(X)))
    True
    """
    with needed_for("to_onnx", "rareclass[onnx]"):
        from rareclass.model.onnx.estimators import export
    return export(model)


def export_file(model: Model, out: Path) -> "onnx.ModelProto":
    """Write the ONNX form of a model; `out` is replaced once it is whole."""
    found = to_onnx(model)
    with replacing(out) as temporary:
        temporary.write_bytes(found.SerializeToString())
    return found
