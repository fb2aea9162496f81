"""A stream that is killed again and again ends as one that never was, to the last bit."""

import multiprocessing
import os
import random
import sys
import time

import pytest

from rareclass.stream.state import checkpoints_in
from stream.messy_stream import assert_same, messy_records, outcome, write_csv

pytestmark = pytest.mark.sampled(0)


def stream(source, folder):
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    words = [
        "rareclass", "stream", source, "--target", "fraud", "--id", "id", "--checkpoint", folder,
        "--learner", "cbr", "--param", "policy=reservoir", "--param", "buffer_size=20",
        "--on-drift", "reset", "--every", 500, "--report-every", 200, "--window", 1000,
        "--hold", 60,
    ]  # fmt: skip
    sys.argv = [str(word) for word in words]
    from rareclass.cli.main import main

    main()


def newest(folder):
    found = checkpoints_in(folder)
    return found[0].name if found else ""


@pytest.mark.parametrize(
    ("kills", "n_rows"), [(1, 3000), pytest.param(20, 20_000, marks=pytest.mark.thorough)]
)
def test_killed_at_random_moments(tmp_path, kills, n_rows):
    source = write_csv(tmp_path / "rows.csv", messy_records(n_rows, n_sure=1200))
    # A server that has imported everything forks the processes: they start at once.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["rareclass.stream.loop", "rareclass.online.cbr"])
    whole = processes.Process(target=stream, args=(source, tmp_path / "whole"))
    whole.start()
    whole.join()
    assert whole.exitcode == 0
    expected = outcome(tmp_path / "whole")
    assert expected["state"].ids.held.n_dropped > 0
    assert expected["state"].alarm.count > 0
    assert len(expected["rejected"].splitlines()) > n_rows // 67
    moments, n_kills, n_folders = random.Random(0), 0, 0
    while n_kills < kills:
        n_folders += 1
        folder, is_done = tmp_path / f"killed-{n_folders}", False
        while not is_done:
            process = processes.Process(target=stream, args=(source, folder))
            before = newest(folder)
            process.start()
            if n_kills < kills:
                while process.is_alive() and newest(folder) == before:
                    time.sleep(0.001)
                process.join(moments.uniform(0.0, 0.1))
                process.kill()
            process.join()
            is_done = process.exitcode == 0
            n_kills += not is_done
            assert process.exitcode in (0, -9)
        assert_same(outcome(folder), expected)
        assert not [path for path in folder.rglob(".*") if path.is_file()]
