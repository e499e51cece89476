"""Certificates made for one test: authorities, and what they sign."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@dataclass(frozen=True)
class Authority:
    """A certificate authority with its key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def signed(self, name: str, *, host: str | None = None, days: int = 30) -> "Authority":
        """A certificate signed by this authority: a server's for `host`, or another authority's."""
        return _made(name, days, host, self)

    def write(self, folder: Path, stem: str) -> tuple[Path, Path]:
        """The certificate and its key as files; the key is the owner's alone."""
        certificate, key = folder / f"{stem}.crt", folder / f"{stem}.key"
        certificate.write_text(self.pem)
        key.write_bytes(self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        key.chmod(0o600)
        return certificate, key


def authority(name: str, *, days: int = 30) -> Authority:
    """A root of that common name, valid for so many days from now; negative for one that has expired."""
    return _made(name, days, None, None)


def _made(name: str, days: int, host: str | None, issuer: Authority | None) -> Authority:
    key = generate_private_key(SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    until = datetime.now(UTC) + timedelta(days=days)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(until, datetime.now(UTC)) - timedelta(days=1))
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        # Authorities of one name are told apart by these.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key((issuer.key if issuer else key).public_key()),
            critical=False,
        )
    )
    if host is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    return Authority(builder.sign(issuer.key if issuer else key, SHA256()), key)
