"""Whatever is sent, the answer is JSON of one shape, and a status that the OpenAPI names."""

import json

from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from draws import draws
from rareclass.serving.service import Settings, service_of
from serving.conftest import ROW

CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**400), 10**400), st.floats(width=64), st.text(),
    st.lists(st.none(), max_size=2), st.sampled_from(["DE", "74.5", "NA", "?", "1e400", "true"]),
)  # fmt: skip
ROWS = st.lists(st.fixed_dictionaries({name: CELLS for name in ROW}), max_size=3)
JSON = st.recursive(CELLS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
COLUMNS = st.fixed_dictionaries({name: st.lists(CELLS, max_size=3) for name in ROW})
BODIES = st.one_of(
    st.binary(),
    st.one_of(
        ROWS, JSON, st.builds(lambda rows: {"rows": rows}, ROWS | JSON),
        st.builds(lambda columns: {"columns": columns}, COLUMNS | JSON),
    ).map(lambda body: json.dumps(body).encode()),
)  # fmt: skip


def test_any_body_is_answered(model):
    with TestClient(service_of(model, Settings(look_seconds=0.0), "0")) as client:
        named = client.get("/openapi.json").json()["paths"]["/score"]["post"]["responses"]

        @draws(40)
        @given(body=BODIES, reasons=st.sampled_from(["", "?reasons=1", "?reasons=x"]))
        def answered(body, reasons):
            answer = client.post("/score" + reasons, content=body)
            assert str(answer.status_code) in named
            assert answer.status_code < 500, answer.text
            told = answer.json()
            if answer.status_code == 200:
                assert all(0 <= row["percentile"] <= 100 for row in told["rows"])
                return
            assert told["errors"]
            for fault in told["errors"]:
                assert set(fault) == {"row", "column", "message", "remedy"}
                assert fault["row"] is None or fault["row"] >= 1
                assert fault["column"] is None or fault["column"] in ROW

        answered()
