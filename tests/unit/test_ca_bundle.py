"""The roots that ship in the layer: whose they are, for how long they hold, and what the builder leaves out."""

import re
import ssl
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256

from layers.stopline.build_ca_bundle import AMAZON, BUNDLE, bundle, certificates, chosen, common_name, pinned, region
from stopline.store import ca
from tests.support.certificates import authority

TEXT = BUNDLE.read_text(encoding="utf-8")
ROOTS = list(certificates(TEXT))

SECURITY = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")

REGIONS = """
af-south-1 ap-east-1 ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1 ap-south-2 ap-southeast-1
ap-southeast-2 ap-southeast-3 ap-southeast-4 ca-central-1 eu-central-1 eu-central-2 eu-north-1 eu-south-1
eu-south-2 eu-west-1 eu-west-2 eu-west-3 il-central-1 me-central-1 me-south-1 sa-east-1 us-east-1 us-east-2
us-west-1 us-west-2
"""
"""Where a deployment needs no bundle of its own. docs/security.md lists the others."""


def test_the_library_looks_where_the_builder_writes() -> None:
    assert ca.BUNDLE.samefile(BUNDLE)


def test_every_listed_region_has_its_three_roots_and_no_other_region_has_one() -> None:
    """CO-14: a cluster may have been given any of the three authorities of its region."""
    found = Counter(name for name in map(region, ROOTS) if name)
    assert found == dict.fromkeys(REGIONS.split(), 3)
    listed = re.search(r"^# Regions: (.*)$", TEXT, re.MULTILINE)
    assert listed is not None
    assert listed[1].split() == sorted(REGIONS.split())
    assert set(REGIONS.split()) <= set(re.findall(r"`([a-z]{2}-[a-z]+-\d)`", SECURITY.split("## The server")[1]))


def test_the_roots_of_proxies_are_there_and_nobody_elses() -> None:
    """CO-14: a proxy's certificate is signed by Amazon's public roots, a cluster's by its region's."""
    assert {common_name(root) for root in ROOTS if region(root) is None} == AMAZON


def test_no_root_expires_within_three_years() -> None:
    """A function keeps its layer for as long as nobody deploys: this fails long before a connection does."""
    limit = datetime.now(UTC) + timedelta(days=3 * 365)
    assert [common_name(root) for root in ROOTS if root.not_valid_after_utc < limit] == []


def test_each_root_is_a_root_and_is_there_once() -> None:
    assert all(root.subject == root.issuer for root in ROOTS)
    assert max(Counter(root.fingerprint(SHA256()) for root in ROOTS).values()) == 1
    for root in ROOTS:
        root.verify_directly_issued_by(root)


def test_the_file_holds_certificates_and_comments_only() -> None:
    rest = re.sub(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n", "", TEXT)
    assert [line for line in rest.splitlines() if line and not line.startswith("# ")] == []
    assert "PRIVATE" not in TEXT


def test_openssl_reads_all_of_them() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(BUNDLE)
    assert context.cert_store_stats() == {"x509": len(ROOTS), "crl": 0, "x509_ca": len(ROOTS)}


def test_the_header_names_the_day_and_each_source_with_its_checksum() -> None:
    assert re.search(r"^# Built: 20\d\d-\d\d-\d\d$", TEXT, re.MULTILINE)
    sources = re.findall(r"^# Source: (.*)$", TEXT, re.MULTILINE)
    assert sources == pinned()
    assert all(re.fullmatch(r"[a-z-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", source) for source in sources)


def test_the_builder_leaves_out_what_has_expired_what_is_no_root_and_what_is_not_for_production() -> None:
    good = authority("Amazon RDS eu-central-1 Root CA ECC384 G1")
    others = [
        authority("Amazon RDS eu-central-1 Root CA RSA2048 G1", days=-1),
        good.signed("Amazon RDS eu-central-1 Root CA RSA4096 G1"),
        authority("Amazon RDS Beta us-east-1 Root CA ECC384 G1"),
        authority("Amazon RDS Preview us-east-2 Root CA ECC384 G1"),
        authority("Amazon RDS Root 2019 CA"),
        authority("Starfield Root Certificate Authority - G2"),
        authority("Somebody Else Root CA 1"),
    ]
    amazon = authority("Amazon Root CA 1")
    found = [other.certificate for other in others] + [good.certificate, amazon.certificate, good.certificate]
    assert chosen(found, datetime.now(UTC).date()) == [amazon.certificate, good.certificate]


def test_an_added_root_needs_no_name_but_must_be_a_root_that_holds() -> None:
    own = authority("The Company's Database CA")
    added = [own.certificate, authority("Old CA", days=-1).certificate, own.signed("Below it").certificate]
    assert chosen([], datetime.now(UTC).date(), added) == [own.certificate]


def test_the_same_roots_on_the_same_day_give_the_same_bytes() -> None:
    day = date(2026, 1, 31)
    once = bundle(chosen(ROOTS, day), ["one", "two"], day)
    again = bundle(chosen(reversed(ROOTS), day), ["one", "two"], day)
    assert once == again
    assert once.split("\n\n", 1)[1] == TEXT.split("\n\n", 1)[1]
