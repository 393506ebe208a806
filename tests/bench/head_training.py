"""What trainings of heads share: their arguments, and a regression without its scaler."""

import argparse
from pathlib import Path
from typing import Any

from parley.convergence.encoder import CrossEncoder, EncoderFiles


def read_arguments(command: str, doc: str | None) -> tuple[CrossEncoder, Path]:
    """Return the encoder to train a head for, and where to write that head."""
    parser = argparse.ArgumentParser(prog=command, description=doc)
    parser.add_argument("--encoder", type=Path, required=True, help="ONNX file of the encoder")
    parser.add_argument("--sha256", required=True, help="of that file")
    parser.add_argument("--tokenizer", type=Path, required=True, help="its tokenizer.json")
    parser.add_argument("--output", type=Path, required=True, help="where to write the head")
    given = parser.parse_args()
    return CrossEncoder(EncoderFiles(given.encoder, given.sha256.lower(), given.tokenizer)), given.output


def unscale(model: Any) -> tuple[Any, float]:
    """Return the weights and the bias of a model on features as they come, without its scaler."""
    scaler, regression = (step for _, step in model.steps)
    weights = regression.coef_[0] / scaler.scale_
    return weights, float(regression.intercept_[0] - weights @ scaler.mean_)
