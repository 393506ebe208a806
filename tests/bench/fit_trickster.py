"""Fit the weights by which the trickster weighs features, and print them as `model/hollowness.py` holds them.

`python -m tests.bench.fit_trickster`. The data are tests/data/consensus/fit.yaml; held-out.yaml is not read. The regression is
regularized (L2 of 1 on standardized terms), since there are few debates, and no weight may go against what its feature means: that
critics who say nothing were to speak for an agreement, say, could only be chance.
"""

import sys

import numpy as np
from msgspec.structs import astuple

from parley.orchestrator.model.hollowness import features_of, terms_of
from tests.support.labelled_debates import read_fitted_debates

_SPEAKS_FOR_HOLLOW = np.array([-1, -1, -1, -1, 1, 1, 1])
"""By feature, in the order of `Features`."""
_STEPS, _STEP = 5_000, 0.02
"""Of the descent; after so many nothing moves any more."""


def fitted() -> tuple[list[float], float, list[float]]:
    """Return the weights, the bias and the means of the terms."""
    debates = read_fitted_debates()
    measured = [features_of(each.question, each.work, each.critiques) for each in debates]
    known = np.array([astuple(terms_of(each)) for each in measured])
    unknown = np.array([[value is None for value in astuple(each)] for each in measured])
    terms = np.where(unknown, np.nan, known)
    mean, spread = np.nanmean(terms, axis=0), np.nanstd(terms, axis=0)
    standard = np.where(unknown, 0, (terms - mean) / spread)
    label = np.where([each.hollow for each in debates], 1, -1)
    found = np.zeros(1 + len(_SPEAKS_FOR_HOLLOW))
    design = np.column_stack([np.ones(len(debates)), standard])
    for _ in range(_STEPS):
        pull = -label / (1 + np.exp(label * (design @ found)))
        found -= _STEP * (design.T @ pull + np.concatenate([[0], found[1:]]))
        found[1:] = np.where(found[1:] * _SPEAKS_FOR_HOLLOW < 0, 0, found[1:])
    weights = found[1:] / spread
    return list(weights), float(found[0] - weights @ mean), list(mean)


def main() -> None:
    """Print the constants."""
    weights, bias, means = fitted()
    for name, values in (("WEIGHTS", weights), ("NEUTRAL", means)):
        sys.stdout.write(f"{name}: Final = Weights({', '.join(f'{each:.2f}' for each in values)})\n")
    sys.stdout.write(f"BIAS: Final = {bias:.2f}\n")


if __name__ == "__main__":
    main()
