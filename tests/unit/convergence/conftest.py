import os
from pathlib import Path

import pytest

from parley.convergence import models
from parley.convergence.encoder import CrossEncoder, EncoderFiles
from parley.convergence.head import EncoderHead
from parley.convergence.models import MiniLm, StaticWords
from tests.support.small_encoder import write_encoder, write_head


@pytest.fixture(scope="session")
def minilm() -> MiniLm:
    return MiniLm()


@pytest.fixture(scope="session")
def minilm_of_floats() -> MiniLm:
    """MiniLM as a processor has it that clips products of eight-bit numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "clips_products", lambda: True)
        return MiniLm()


@pytest.fixture(scope="session")
def static_words() -> StaticWords:
    return StaticWords()


@pytest.fixture(scope="session")
def small_encoder(tmp_path_factory: pytest.TempPathFactory) -> EncoderFiles:
    """An encoder that is made for tests: it says nothing sensible."""
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def small_head(small_encoder: EncoderFiles) -> EncoderHead:
    return EncoderHead.read(write_head(small_encoder.model.parent, small_encoder))


@pytest.fixture(scope="session")
def real_head() -> EncoderHead:
    """The head of a real encoder: its folder holds `model.onnx`, `tokenizer.json`, and `head.json` of `make agreement-head`."""
    folder = os.environ.get("PARLEY_TEST_ENCODER")
    if not folder:
        pytest.skip("no encoder with a licence comes along: PARLEY_TEST_ENCODER names the folder of one")
    return EncoderHead.read(Path(folder) / "head.json")


@pytest.fixture(scope="session")
def real_encoder(real_head: EncoderHead) -> CrossEncoder:
    folder = Path(os.environ["PARLEY_TEST_ENCODER"])
    return CrossEncoder(
        EncoderFiles(folder / "model.onnx", real_head.encoder_sha256, folder / "tokenizer.json")
    )
