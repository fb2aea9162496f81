"""Learned models as graphs of ONNX: what each family of models is in its operators."""
