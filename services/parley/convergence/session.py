"""Sessions of onnxruntime, with its telemetry switched off."""

import os
from collections.abc import Sequence
from typing import Any

# The library reads it when it is loaded. Without it each process sends data on its machine to onnxruntime's maker, and keeps a
# device id below ~/.cache; the library's own `disable_telemetry_events` does not prevent that.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime


def create_session(model: str | bytes, *, without: Sequence[str] = ()) -> Any:
    """Load a model, a file's path or its bytes, to be run on the thread that calls it; `without` names optimizations to leave out."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # it warns of shapes that a file states for its fixed length
    return onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"], disabled_optimizers=list(without)
    )
