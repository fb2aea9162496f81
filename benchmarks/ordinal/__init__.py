"""Ordered targets: OrdinalRankRC beside regression, ordinal regression and ranking objectives.

- sets: where the ordered targets come from.
- choice: what a method is given and gives back.
- rankers: OrdinalRankRC, RANK-RND, ordinal RankSVM.
- peers: KNN, SVR and ridge regression, LightGBM, mord.
- protocol: how a parameter is chosen, and what is measured.
- figures: means and paired tests.
- page: the tables.
"""
