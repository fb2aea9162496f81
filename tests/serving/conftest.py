"""A small model that is served in this process."""

import pytest
from starlette.testclient import TestClient

from command_line import run
from made_tables import purchases
from rareclass.serving import Limits
from rareclass.serving.live_model import LiveModel
from rareclass.serving.service import Settings, service_of

ROW = {"amount": 74.5, "items": 3, "country": "XX", "member": True}


def fit(folder, *words, rows=None, name="m"):
    rows = purchases() if rows is None else rows
    rows.write_csv(folder / f"{name}.csv")
    model = folder / f"{name}.rareclass"
    given = ["fit", folder / f"{name}.csv", "-t", "fraud", "-o", model, "--overwrite", *words]
    run(*given)
    return model


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rareclass.fit.training.baselines", lambda *rows: [])
        return fit(tmp_path_factory.mktemp("served"), "--method", "rankrc", "--lam", "0.1")


@pytest.fixture(scope="session")
def model(fitted):
    return LiveModel(fitted)


@pytest.fixture
def serve(model):
    clients = []

    def start(served=model, token=None, **limits):
        settings = Settings(Limits(**limits), token, look_seconds=0.0)
        client = TestClient(service_of(served, settings, "0"), raise_server_exceptions=True)
        clients.append(client.__enter__())
        return client

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve):
    return serve()
