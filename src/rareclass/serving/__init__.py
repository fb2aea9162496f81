"""A model behind HTTP: `rareclass serve`."""
