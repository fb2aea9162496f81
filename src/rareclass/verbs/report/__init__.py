"""``rareclass report``: one HTML page on a model, a comparison, a stream or a hunt."""
