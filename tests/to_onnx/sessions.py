"""Models of ONNX run by onnxruntime on arrays and tables."""

import numpy as np
import onnxruntime


def answers(model, rows):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    if isinstance(rows, np.ndarray):
        return dict(zip(names, session.run(names, {"X": rows}), strict=True))
    given = {}
    for each in session.get_inputs():
        cells = rows[each.name].to_list()
        if each.type == "tensor(double)":
            column = np.array([np.nan if cell is None else cell for cell in cells], np.float64)
        else:
            column = np.array([cell if isinstance(cell, str) else "" for cell in cells], object)
        given[each.name] = column[:, None]
    return dict(zip(names, session.run(names, given), strict=True))


def differences(found, model, rows):
    scores = float(np.abs(found["score"][:, 0] - model.score_samples(rows)).max())
    same = bool((found["label"] == model.predict(rows)).all())
    if "probability" not in found:
        return scores, 0.0, same
    return scores, float(np.abs(found["probability"] - model.predict_proba(rows)).max()), same
