"""The learners of an ensemble, one a file; `registry` names them."""
