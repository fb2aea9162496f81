"""Tables and figures of five papers, run again beside the printed ones.

`python -m benchmarks.paper_tables table2|table4|fig3|fig5|fig6|cbr3|cbr4|cbr5|cbr6|
mibc2|mibc4|mibc_roc|rach`. Each writes one JSON file into benchmarks/results and prints its page,
our figures next to the paper's; table4's page has Table 5 as well. ``study`` has their options, and
``time_limit`` runs a function in a process of its own.

Tayal, Coleman and Li (2015), RankRC:

- ``protocol``: standardising, splits, choice of the parameter (section 6)
- ``methods``: the registry of methods; ``svm``, ``svm_perf``, ``neighbours``, ``ranking`` hold them
- ``real_sets``: the sets of Table 3; ``keel``: two of them; ``intrusion``: KDD Cup 99 (section 6.3)
- ``table2``, ``table4``, ``fig5``, ``fig6``: one study each
- ``real_cells``: figures and page of Tables 4 and 5

Tayal, Coleman and Li (2014), bounds: ``fig3``; the ordinal experiments are `benchmarks.ordinal`.

Khalid, Ray and Chitsaz (2016), online ranking, one study for Tables 3 and 4 and one for 5 and 6:

- ``cbr_sets``: the sets of Tables 1 and 2; ``cbr_methods``: the learners
- ``cbr_protocol``: scaling, folds, choice of C or eta; ``fits``: the fits that are done
- ``cbr_figures``: means and order; ``cbr_tables``: the four commands

Grave and El Ghaoui (2014), MIBC, one study for Table 2 and one for 4:

- ``mibc_sets``: dense sets and groups of texts; ``mibc_methods``: MIBC and liblinear, timed
- ``mibc_protocol``: one run; ``mibc_figures``: means, paired tests
- ``mibc_tables``: the two commands; ``mibc_roc``: the curves of Figures 2 and 3

He, Tong and Carbonell (2010), RACH, whose figures are curves: no printed ones beside ours

- ``rach_sets``: the synthetic set and pairs of classes; ``rach_methods``: RACHCV and all others
- ``rach_paper``: RACH without what RACHCV adds; ``manifold_ranking``, ``transductive_svm``
- ``rach_choice``: parameters by cross-validated F1; ``rach_protocol``: labels, one run
- ``rach_figures``: who is first or not behind; ``rach_tables``: the command

``paper`` has the printed figures of all (``paper_values.json``).
"""
