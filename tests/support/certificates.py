"""An authority for tests, and the certificates that it signs."""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates; `file` is its own."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        made = _builder(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.file = _put_file(folder / f"{name}.pem", _pem(made.sign(self._key, hashes.SHA256())))

    def sign(
        self,
        name: str,
        uris: Sequence[str] = (),
        file_name: str = "",
        emails: Sequence[str] = (),
        hosts: Sequence[str] = ("localhost", "127.0.0.1"),
    ) -> tuple[Path, Path]:
        """Make a certificate for hosts, by default this machine, under a common name, URIs and addresses of mail.

        Return its file and its key's.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [
            *map(_host_name, hosts),
            *map(x509.UniformResourceIdentifier, uris),
            *map(x509.RFC822Name, emails),
        ]
        made = _builder(_name(name), self._name, key).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        stem = file_name or name
        certificate = _put_file(self._folder / f"{stem}.pem", _pem(made.sign(self._key, hashes.SHA256())))
        return certificate, _put_file(self._folder / f"{stem}.key", private)


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _put_file(path: Path, content: bytes) -> Path:
    """Put a file in place whole, as who replaces certificates does."""
    made = path.with_suffix(".new")
    made.write_bytes(content)
    return made.replace(path)
