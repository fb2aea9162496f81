"""The plot of learned scales shows what is in use and says what it leaves out."""

from types import SimpleNamespace

import numpy as np
import pytest

from rareclass import RankRC
from rareclass.report import draw_feature_scales


def model(scales, names=None):
    found = SimpleNamespace(feature_scales_=np.asarray(scales, dtype=float))
    if names is not None:
        found.feature_names_in_ = np.array(names)
    return found


def texts(figure):
    axes = figure.axes[0]
    return [label.get_text() for label in axes.get_yticklabels()], axes.get_xlabel()


def test_bars_are_sorted_named_and_zeros_are_counted(tmp_path):
    figure = draw_feature_scales(model([0.5, 0.0, 3.0, 0.0], ["a", "b", "c_$x$", "d"]))
    names, below = texts(figure)
    assert names == ["c_$x$", "a"]
    assert "2 dropped" in below
    assert [bar.get_width() for bar in figure.axes[0].patches] == [3.0, 0.5]
    assert "2 of 4" in figure.axes[0].get_title()
    figure.savefig(tmp_path / "scales.png")
    assert (tmp_path / "scales.png").stat().st_size > 5000


def test_many_features_are_cut_and_the_rest_is_told():
    scales = np.linspace(0.0, 2.0, 101)
    names, below = texts(draw_feature_scales(model(scales), most=12))
    assert len(names) == 12
    assert names[0] == "column 100"
    assert "88 more in use, at 1.76 or below" in below
    assert "1 dropped" in below


def test_scales_that_are_all_one_are_said_to_be_so():
    _, below = texts(draw_feature_scales(model(np.ones(5))))
    assert "all are 1" in below


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="no learned scales"):
        draw_feature_scales(RankRC())
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) < 9
    with pytest.raises(ValueError, match="feature_scaling='learned'"):
        draw_feature_scales(RankRC(lam=1.0).fit(X, y))
    with pytest.raises(ValueError, match="2 names for 3"):
        draw_feature_scales(model(np.ones(3)), ["a", "b"])
    with pytest.raises(ValueError, match="most=0"):
        draw_feature_scales(model(np.ones(3)), most=0)
