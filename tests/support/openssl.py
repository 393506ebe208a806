"""What tests need of `openssl` and coreutils, as an auditor has them."""

import shutil
import subprocess

import pytest


def _signs_ed25519() -> bool:
    """Whether there is an openssl that verifies Ed25519 over a file (3.0 and later)."""
    if not all(map(shutil.which, ("openssl", "sha256sum", "base64", "sed"))):
        return False
    said = subprocess.run(["openssl", "version"], capture_output=True, text=True, check=False, timeout=30)
    return said.stdout.startswith(("OpenSSL 3", "OpenSSL 4"))


needs_openssl = pytest.mark.skipif(
    not _signs_ed25519(), reason="there is no openssl 3 with sha256sum, base64 and sed on this machine"
)
