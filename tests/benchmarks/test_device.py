"""The command for a device, on small tables without one."""

import json

import pytest

from benchmarks import device


def test_the_command_runs_without_a_device_and_says_what_share_it_reached(tmp_path, capsys):
    file, cases = tmp_path / "device.json", ("1M x 40, 16 lams", "100M x 20")
    words = ["--device", "numpy", "--scale", "1e-6", "--rate-bytes", "400000"]
    asked = [*words, "--scratch", str(tmp_path), "--json", str(file), "--cases", *cases]
    assert device.main(asked) == 0
    printed = capsys.readouterr().out
    assert "16 lams: " in printed
    assert "XGBoost" in printed
    rows = json.loads(file.read_text())["cases"]
    assert list(rows) == list(cases)
    for name, row in rows.items():
        ours = row["rankrc"]
        assert len(ours["auc"]) == len(row["lams"]) == (16 if "16" in name else 1)
        assert set(ours["status"]) == {"converged"}
        assert all(row["rates"].values())


def test_shares_are_those_of_the_rates_by_hand():
    case, has = device.Case(10**6, 40), dict.fromkeys(["sgemm", "sgemm_block", "exp"], 1e12)
    has |= {"read": 1e10, "first_touch": 1e10, "sgemv_block": 1e12}
    found = {
        "seconds": 8.0, "passes": 5.0, "readings": 5.0, "in_memory": 0.5, "landmarks": 1000,
    }  # fmt: skip
    told = device.shares(found, case, has)
    # Half of the kernel is made again in the four passes that follow the first.
    assert told["of_matrix_rate"] == pytest.approx(2 * 40 * 1e9 * 3 / 8.0 / 1e12)
    assert told["of_memory_rate"] == pytest.approx(4e9 * 5 / 8.0 / 1e10)
    assert 0.0 < told["of_least_seconds"] < 1.0
