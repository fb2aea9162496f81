"""The learners of an ensemble; `registry` names them."""
