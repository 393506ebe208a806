"""How many of the planted flips the position ledger finds, on the open half and on the held-out one.

PARLEY_TEST_ENCODER names the folder of the encoder: `model.onnx`, `tokenizer.json` and `head.json`.
"""

import os
import sys
from pathlib import Path

from parley.convergence.agreement import Agreements, NliAgreement
from parley.convergence.encoder import EncoderFiles
from parley.convergence.encoder_threads import EncoderThreads
from parley.convergence.head import EncoderHead
from tests.bench.figures import main, table
from tests.support.labelled_flips import measure


async def run(quick: bool) -> None:
    """Print the table; a quick run leaves the held-out half out."""
    named = os.environ.get("PARLEY_TEST_ENCODER")
    if not named:
        sys.exit("PARLEY_TEST_ENCODER names no folder of an encoder")
    folder = Path(named)
    head = EncoderHead.read(folder / "head.json")
    files = EncoderFiles(folder / "model.onnx", head.encoder_sha256, folder / "tokenizer.json")
    encoder, rows = EncoderThreads(files, 1), []
    model = NliAgreement(encoder, head)
    for half in ("open",) if quick else ("open", "held-out"):
        for matter, is_named in (("by the questions", False), ("named by the answer", True)):
            found = await measure(half, Agreements(model, cache=1000), matter_is_named=is_named)
            rows.append(
                [
                    half,
                    matter,
                    f"{found.f1:.2f}",
                    f"{found.found} of {found.planted}",
                    str(found.wrong),
                    str(found.unknown),
                ]
            )
    await encoder.close()
    table(["half", "same matter", "F1", "flips found", "wrong", "planted flips that cannot be told"], rows)


if __name__ == "__main__":
    main(__doc__, run)
