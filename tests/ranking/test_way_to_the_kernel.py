"""How many functions and files lie between `fit` and the kernel that it asks: few, for a reader."""

import traceback
from pathlib import Path

import numpy as np

import rareclass
from rareclass import RankRC
from rareclass.kernels.kernels import Gaussian


def test_from_fit_to_the_kernel_in_a_pass(monkeypatch):
    ways = []
    original = Gaussian.block

    def block(*args):
        package = str(Path(rareclass.__file__).parent)
        stack = [frame for frame in traceback.extract_stack() if frame.filename.startswith(package)]
        ways.append([(frame.filename, frame.name) for frame in stack])
        return original(*args)

    monkeypatch.setattr(Gaussian, "block", block)
    rng = np.random.default_rng(0)
    # So many rows that a pass works out its kernel anew: none lies in memory.
    RankRC(n_jobs=1, memory="64KiB").fit(rng.normal(size=(4000, 3)), np.arange(4000) < 20)
    passes = [way for way in ways if any(name == "answer" for _, name in way)]
    assert passes
    assert max(len(way) for way in passes) <= 10
    assert max(len({file for file, _ in way}) for way in passes) <= 6
