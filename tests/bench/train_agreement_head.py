"""Train the head of the agreement model on the labelled statements, and write it.

Probabilities are calibrated on statements that the head has not seen (cross-validation by topic) so that of pairs with
different answers 0.7 % reach 0.7, and of pairs with the same one 5 % fall to 0.3: to join what is opposed is the worse error.
"""

import sys
from typing import Final

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from parley.convergence.encoder import CrossEncoder
from parley.convergence.head import EncoderHead
from tests.bench.head_training import read_arguments, unscale
from tests.support.labelled_stands import Topic, pairs_of, training_topics

_REGULARIZATION: Final = 0.03
"""Of 0.003, 0.01 and 0.03 the best by cross-validation over topics; they differ by 0.006 in AUC."""
_OPPOSED_JOINED: Final = 0.007
_SAME_PARTED: Final = 0.05
_LOGIT: Final = float(np.log(0.7 / 0.3))
"""Of 0.7; that of 0.3 is its negative."""
_FOLDS: Final = 10
_TAKEN_FOR_FOREIGN: Final = 0.05
"""Share of the training pairs that may be taken for another language: they are only asked about."""


def train(encoder: CrossEncoder, topics: tuple[Topic, ...]) -> EncoderHead:
    """Return the head for an encoder."""
    pairs = pairs_of(topics)
    ordered = [sorted((pair.one, pair.other)) for pair in pairs]
    read = np.stack([encoder.read(*each) for each in (*ordered, *(each[::-1] for each in ordered))])
    same = np.array([pair.same for pair in pairs])
    model = make_pipeline(
        StandardScaler(), LogisticRegression(C=_REGULARIZATION, max_iter=5000, class_weight="balanced")
    )
    twice = np.concatenate([same, same])
    groups = [pair.topic for pair in pairs] * 2
    told = cross_val_predict(
        model, read, twice, groups=groups, cv=GroupKFold(_FOLDS), method="decision_function"
    )
    unseen = told.reshape(2, -1).mean(axis=0)
    joined_from = np.quantile(unseen[~same], 1 - _OPPOSED_JOINED)
    apart_to = min(np.quantile(unseen[same], _SAME_PARTED), joined_from - 1e-6)
    scale = 2 * _LOGIT / (joined_from - apart_to)
    model.fit(read, twice)
    weights, bias = unscale(model)
    known = [min(map(encoder.share_of_known_words, (pair.one, pair.other))) for pair in pairs]
    return EncoderHead(
        encoder_sha256=encoder.sha256,
        known_words=round(float(np.quantile(known, _TAKEN_FOR_FOREIGN)), 3),
        weights=(scale * weights).astype(np.float32),
        bias=float(scale * (bias - (joined_from + apart_to) / 2)),
    )


def main() -> None:
    """Read the arguments, train and write."""
    encoder, output = read_arguments("make agreement-head", __doc__)
    train(encoder, training_topics()).write(output)
    sys.stdout.write(f"wrote {output}\n")


if __name__ == "__main__":
    main()
