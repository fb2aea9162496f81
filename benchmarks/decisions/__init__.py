"""From scores to decisions: probabilities, thresholds under a constraint, paired tests."""
