"""``rareclass compare``: score files, or methods on the same folds."""
