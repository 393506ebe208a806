"""Train the head that tells whether a text supports a claim, and write it.

It is trained on `tests/data/analysis/support-train.yaml` alone. Its zero is the threshold that is best on the open half of the planted
answers, whose claims it is not trained on.
"""

import sys
from typing import Final

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from parley.convergence.encoder import CrossEncoder
from parley.convergence.head import EncoderHead
from parley.convergence.models import MiniLm, StaticWords
from tests.bench.head_training import read_arguments, unscale
from tests.support.claim_support import best_threshold, labelled_answers, score_claims, training_pairs

_REGULARIZATION: Final = 0.03


def train(encoder: CrossEncoder) -> EncoderHead:
    """Return the head for an encoder."""
    pairs = training_pairs()
    read = np.stack([encoder.read(text, claim) for text, claim, _ in pairs])
    model = make_pipeline(StandardScaler(), LogisticRegression(C=_REGULARIZATION, max_iter=5000))
    model.fit(read, [supports for _, _, supports in pairs])
    weights, bias = unscale(model)
    head = EncoderHead(
        encoder_sha256=encoder.sha256,
        known_words=round(min(encoder.share_of_known_words(claim) for _, claim, _ in pairs), 3),
        weights=weights.astype(np.float32),
        bias=bias,
        task="support",
    )
    answers, models = labelled_answers("open"), (StaticWords(), MiniLm())
    scores = [
        each
        for answer in answers
        for each in score_claims(answer, models, lambda text, claim: head.score(encoder.read(text, claim)))
    ]
    return EncoderHead(
        head.encoder_sha256, head.known_words, head.weights, bias - best_threshold(answers, scores), "support"
    )


def main() -> None:
    """Read the arguments, train and write."""
    encoder, output = read_arguments("make support-head", __doc__)
    train(encoder).write(output)
    sys.stdout.write(f"wrote {output}\n")


if __name__ == "__main__":
    main()
