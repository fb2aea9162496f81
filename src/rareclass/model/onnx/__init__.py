"""A learned model as a model of ONNX, to be scored where there is no Python."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rareclass.errors import ErrorKind, InputError, needed_for
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
        last step is one of these, `RareClassifier` left out; or what `rareclass.load` gave.

    Returns
    -------
    onnx.ModelProto
        Inputs: ``X``, double of shape (n_rows, n_features), where the model was learned from an
        array or is an estimator of numbers; else one input a column of the table, by its name and
        of shape (n_rows, 1): numbers double and NaN where empty, words strings and "" where empty.

        Outputs: ``score``, double of shape (n_rows, 1); ``label`` of shape (n_rows,); and, where
        the model has probabilities, ``probability``, double of shape (n_rows, n_classes) in the
        order of the classes.

    Raises
    ------
    InputError
        Where a part of the model has no form in ONNX, naming it: sparse rows, kernels that are
        functions, columns of dates and texts, several rare classes. Where packages
        of the extra are missing.

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
        from rareclass.model.onnx.estimators import export_estimator, export_pipeline, finished
    if isinstance(model, Pipeline):
        return export_pipeline(model)
    if not isinstance(model, Model):
        check_is_fitted(model)
        return export_estimator(model)
    return finished(*_parts_of_file(model))


def export_file(model: Model, out: Path) -> "onnx.ModelProto":
    """Write the ONNX form of a model; `out` is replaced once it is whole."""
    found = to_onnx(model)
    with replacing(out) as temporary:
        temporary.write_bytes(found.SerializeToString())
    return found


def _parts_of_file(model: Model) -> tuple[Any, Any]:
    """Return inputs and outputs of a model with its encoder."""
    from rareclass.encoding.encoders import TableEncoder, TypedColumns
    from rareclass.model.onnx.estimators import ModelOutputs, known_probability, label_of, score_of
    from rareclass.model.onnx.graph import Graph, TableInputs, refuse_column
    from rareclass.model.onnx.rare_classifier import EncodedRow, dense_rows, level_odds

    inputs, encoder = TableInputs(Graph()), model.encoder
    if isinstance(encoder, TypedColumns):
        for column in encoder.columns:
            if column.reads_as == "date":
                raise refuse_column(column.name, "date")
        score = score_of(model.estimator, inputs)
    elif isinstance(encoder, TableEncoder):
        row = EncodedRow(inputs, encoder.statistics_)
        rows = dense_rows(row, encoder.view_)
        if encoder.level_odds_.places_:
            rows = inputs.graph.side_by_side([rows, *level_odds(row, encoder.level_odds_)])
        if encoder.dtype_ == "float32":
            rows = rows.to(np.float32).to(np.float64)
        score = score_of(model.estimator, TableInputs(inputs.graph, rows))
    else:
        raise InputError(
            f"{model!r} encodes rows by a {type(encoder).__name__}, which has no form in "
            "ONNX: sparse rows, streams and hunts have none.",
            "rareclass fit of a table with named columns makes models that have one.",
            ErrorKind.UNSUPPORTED,
        )
    label = label_of(score, np.asarray(model.thresholds), list(model.classes))
    return inputs, ModelOutputs(score, label, known_probability(score, model.calibration))
