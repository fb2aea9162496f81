"""Average precision against seconds: means over the sets that all fits were run on."""

from benchmarks import anytime


def run_of(set_name, method, ap, seconds):
    return {
        "key": f"{set_name} / {method}", "repeat": 0, "status": "ok", "set": set_name,
        "method": method, "average_precision": ap, "auc": 0.9, "seconds": seconds,
    }  # fmt: skip


RUNS = [
    run_of("coil", "RareClassifier, 1 s", 0.2, 1.0),
    run_of("coil", "CatBoost", 0.3, 4.0),
    run_of("wine4", "RareClassifier, 1 s", 0.4, 2.0),
    run_of("wine4", "CatBoost", 0.1, 2.0),
    run_of("kdd", "CatBoost", 0.9, 90.0),  # there is no other fit of it yet
]


def test_means_are_over_the_sets_that_every_method_was_run_on():
    ours, peer = anytime.lines(RUNS)
    assert ours == ["RareClassifier, 1 s", "2", "30.00", "90.00", "1.5", "2.0"]
    assert peer[2] == "20.00"
    assert anytime.lines(RUNS[-1:]) == [["CatBoost", "1", "90.00", "90.00", "90.0", "90.0"]]


def test_the_page_has_every_set_and_says_what_is_missing():
    page = anytime.anytime_page({"runs": RUNS})
    assert "| kdd | - | 90.0 |" in page
    assert "| coil | 20.0 | 30.0 |" in page


def test_a_budget_is_named_as_it_is_read():
    assert anytime.name_of(10.0) == "RareClassifier, 10 s"
    assert anytime.name_of(2.5) == "RareClassifier, 2.5 s"
