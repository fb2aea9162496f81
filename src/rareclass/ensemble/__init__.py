"""Many learners on one table, combined on the scale of their false-positive rates."""
