"""What a target column means, and what a score decides about it."""
