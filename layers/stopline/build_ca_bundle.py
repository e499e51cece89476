"""Builds the CA bundle that ships in the layer: what a database on RDS or an RDS Proxy may be signed by, and no more.

    .venv/bin/python layers/stopline/build_ca_bundle.py            writes stopline/store/ca/aws-rds.pem
    .venv/bin/python layers/stopline/build_ca_bundle.py --check    says whether the sources still give the same bundle
    .venv/bin/python layers/stopline/build_ca_bundle.py --add F    adds the roots in PEM file F, for a region that the
                                                                   packages do not have

pip fetches the packages of ca-sources.txt and refuses one whose checksum differs. Kept are the unexpired regional roots
of Amazon RDS and Amazon's own roots (proxies). Left out are expired certificates, intermediates (the server sends
those), and the roots of AWS's beta and preview environments.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "ca-sources.txt"
BUNDLE = HERE / "python" / "stopline" / "store" / "ca" / "aws-rds.pem"

REGIONAL = re.compile(r"Amazon RDS ([a-z]{2}(?:-[a-z]+)+-\d) Root CA (?:RSA2048|RSA4096|ECC384) G\d+")
"""The common name of a regional root. Those of beta and preview environments have another word before the region."""

AMAZON = frozenset(
    {f"Amazon Root CA {number}" for number in (1, 2, 3, 4)} | {"Starfield Services Root Certificate Authority - G2"}
)
"""The common names of Amazon Trust Services' roots, by which RDS proxies are signed."""

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def certificates(text: str) -> Iterator[x509.Certificate]:
    """Every certificate of a PEM text."""
    with warnings.catch_warnings():
        # Other authorities' roots in the sources break rules that newer versions of the reader insist on.
        warnings.simplefilter("ignore")
        for block in _BLOCK.findall(text):
            yield x509.load_pem_x509_certificate(block.encode())


def common_name(certificate: x509.Certificate) -> str:
    """The subject's common name; empty without one."""
    names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def region(certificate: x509.Certificate) -> str | None:
    """The region of a regional root; None for any other certificate."""
    match = REGIONAL.fullmatch(common_name(certificate))
    return match[1] if match else None


def chosen(
    found: Iterable[x509.Certificate], today: date, added: Iterable[x509.Certificate] = ()
) -> list[x509.Certificate]:
    """The roots that belong in the bundle, each once: Amazon's own first, then by region and name. Of `added` ones the
    name does not matter."""
    named = (one for one in found if region(one) is not None or common_name(one) in AMAZON)
    roots = {
        certificate.fingerprint(SHA256()): certificate
        for certificate in (*named, *added)
        if certificate.subject == certificate.issuer and certificate.not_valid_after_utc.date() > today
    }
    return sorted(roots.values(), key=lambda root: (region(root) or "", common_name(root), root.fingerprint(SHA256())))


def bundle(roots: Iterable[x509.Certificate], sources: Iterable[str], built: date) -> str:
    """The text of the bundle: a header that names sources and date, then each root under its name and last day."""
    roots = list(roots)
    regions = sorted({name for name in map(region, roots) if name})
    lines = [
        "# What Stopline trusts as the certificate of an Aurora or RDS database, or of an RDS Proxy before it.",
        "# Made by layers/stopline/build_ca_bundle.py; change nothing by hand.",
        f"# Built: {built.isoformat()}",
        *(f"# Source: {source}" for source in sources),
        f"# Regions: {' '.join(regions)}",
        "# In another region add its roots (--add), or name a file of your own: docs/security.md.",
    ]
    for root in roots:
        lines += ["", f"# {common_name(root)}, until {root.not_valid_after_utc.date().isoformat()}"]
        lines.append(root.public_bytes(Encoding.PEM).decode().strip())
    return "\n".join(lines) + "\n"


def fetched(folder: Path) -> list[x509.Certificate]:
    """Every certificate in the .pem files of the pinned packages, fetched into `folder` by pip."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", str(SOURCES), "-d", str(folder)], check=True)
    found: list[x509.Certificate] = []
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(".pem"):
                    found.extend(certificates(archive.read(name).decode("utf-8")))
    return found


def pinned() -> list[str]:
    """The lines of ca-sources.txt that name a package."""
    return [line for line in SOURCES.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def built_on(text: str) -> date:
    """The date in a bundle's header. Raises ValueError when there is none."""
    match = re.search(r"^# Built: (\S+)$", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"{BUNDLE.name}: has no line `# Built:`; build it again")
    return date.fromisoformat(match[1])


def main() -> int:
    """Build, or with --check compare. Exit status 1 when the shipped bundle is not what the sources give."""
    parser = argparse.ArgumentParser(description="Builds the layer's CA bundle from the packages of ca-sources.txt.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the shipped bundle differs")
    parser.add_argument("--add", type=Path, metavar="FILE", action="append", default=[], help="more roots, as PEM")
    arguments = parser.parse_args()
    check, files = arguments.check, [Path(file) for file in arguments.add]
    shipped = BUNDLE.read_text(encoding="utf-8") if BUNDLE.exists() else ""
    today = built_on(shipped) if check else datetime.now(UTC).date()
    added = [root for file in files for root in certificates(file.read_text(encoding="utf-8"))]
    sources = [*pinned(), *(f"{file.name} --hash=sha256:{sha256(file.read_bytes()).hexdigest()}" for file in files)]
    with tempfile.TemporaryDirectory() as folder:
        text = bundle(chosen(fetched(Path(folder)), today, added), sources, today)
    if not check:
        BUNDLE.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{BUNDLE.name}: {text.count('BEGIN CERTIFICATE')} roots, {len(text)} bytes\n")
    if check and text != shipped:
        sys.stderr.write(f"{BUNDLE.name}: differs from what ca-sources.txt gives. Fix: build it again and review it\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
