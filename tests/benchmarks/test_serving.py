"""LightGBM behind the service, which is compared with ours: it has to answer."""

import numpy as np
import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("fastapi")

from starlette.testclient import TestClient

from benchmarks.serving_lightgbm import ServedBooster, save
from rareclass.serving.live_model import LiveModel
from rareclass.serving.service import Settings, service_of


def test_the_booster_answers(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    save(tmp_path / "booster", X, X[:, 0] > 1)
    model = LiveModel(tmp_path / "booster", ServedBooster)
    with TestClient(service_of(model, Settings(), "1.0")) as client:
        answer = client.post("/score", json=[{"x00": 2.0, "x01": 0.0, "x02": None}])
        assert answer.status_code == 200
        assert answer.json()["rows"][0]["decision"] == "1"
