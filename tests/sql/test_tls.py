"""What a poller on AWS asks of the server's certificate, tried on a server with TLS that checks the token.

The wheel's PostgreSQL has no TLS, so this takes the system's.
"""

import ipaddress
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stopline.errors import InfrastructureError
from stopline.store.ca import BUNDLE
from stopline.store.connection import Session, Target, connect
from stopline_cli.local.account import server_account
from stopline_cli.local.datadir import PORT
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import connect as connect_locally
from stopline_cli.local.prepare import make_database
from tests.support.certificates import Authority, authority
from tests.support.system_postgres import needed_programs

HOST = "jobs.cluster-c1example.eu-central-1.rds.amazonaws.com"
TOKEN = f"{HOST}:{PORT}/?Action=connect&DBUser=stopline_worker&X-Amz-Signature=" + "5a" * 500
"""As long as a real one."""

HBA = """
local all all trust
hostssl all all 127.0.0.0/8 scram-sha-256
"""


@dataclass(frozen=True)
class TlsServer:
    """A server on a loopback address of its own, whose certificate names `HOST` and is signed by `root`."""

    root: Authority
    address: str
    folder: Path

    def target(self, *, host: str = HOST, roots: Path | None = None) -> Target:
        """What a poller's settings give for this server."""
        sslrootcert = str(roots or self.file("root.pem", self.root.pem))
        return Target(host, PORT, "app", "stopline_worker", "iam", "eu-central-1", sslrootcert)

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path


@pytest.fixture(scope="module")
def server() -> Iterator[TlsServer]:
    programs = needed_programs()
    root = authority("Amazon RDS eu-central-1 Root CA ECC384 G1")
    with tempfile.TemporaryDirectory(prefix="stopline-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        address = str(ipaddress.IPv4Address("127.64.0.1") + secrets.randbelow(2**20))
        postgres = EmbeddedPostgres(folder / "pg", durable=False, programs=programs)
        try:
            postgres.start()
            make_database(postgres, "app")
            _listen(postgres, root, address)
            yield TlsServer(root, address, folder)
        finally:
            postgres.destroy()


def _listen(postgres: EmbeddedPostgres, root: Authority, address: str) -> None:
    """Gives the server its certificate and an address, and lets nobody in by it without TLS and the token."""
    certificate, key = root.signed(HOST, host=HOST).write(postgres.data_dir, "server")
    hba = postgres.data_dir / "pg_hba.conf"
    hba.write_text(HBA)
    for file in (certificate, key, hba):
        server_account().give(file)
    settings = {"ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key, "listen_addresses": address}
    with connect_locally(postgres, "app") as admin:
        for name, value in settings.items():
            admin.execute(f"alter system set {name} = '{value}'")
        admin.execute(f"alter role stopline_worker password '{TOKEN}'")
    postgres.stop()
    postgres.start()


@pytest.fixture(autouse=True)
def on_aws(server: TlsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name leads to the server, and the signer is stood in for: it needs the credentials of a role."""
    monkeypatch.setenv("PGHOSTADDR", server.address)
    monkeypatch.setattr("stopline.store.connection.auth_token", lambda *_: TOKEN)


def test_the_right_root_and_the_right_host_are_let_in_with_the_token_as_password(server: TlsServer) -> None:
    """CO-14: verify-full, with a bundle that holds more roots than the one that is needed."""
    roots = server.file("roots.pem", BUNDLE.read_text() + server.root.pem)
    with connect(server.target(roots=roots)) as conn:
        row = conn.execute(
            "select ssl, current_user from pg_stat_ssl where pid = pg_backend_pid()",
        ).fetchone()
        assert row == (True, "stopline_worker")
        assert conn.info.get_parameters()["sslmode"] == "verify-full"


def test_the_librarys_session_runs_over_it(server: TlsServer) -> None:
    session = Session(server.target())
    assert session.rows("select inet_server_addr()::text") == [(f"{server.address}/32",)]
    session.close()


def test_a_wrong_host_is_refused_although_the_root_signed_its_certificate(server: TlsServer) -> None:
    """CO-14: another database of the same account has a certificate by the same root."""
    other = HOST.replace("jobs", "other")
    with pytest.raises(InfrastructureError) as refused:
        connect(server.target(host=other))
    text = str(refused.value)
    assert f"cannot connect to database app at {other}:{PORT} as stopline_worker" in text
    assert f'does not match host name "{other}"' in text
    assert f"Fix: use the name that the database's certificate was made for, not {other}" in text
    assert TOKEN not in text


@pytest.mark.parametrize("roots", ["of somebody else", "of the same name", "shipped"])
def test_a_server_that_no_trusted_root_signed_is_refused_and_the_bundle_is_named(server: TlsServer, roots: str) -> None:
    """CO-14: the name of a root proves nothing, and the shipped bundle trusts nobody but Amazon."""
    impostor = authority("Amazon RDS eu-central-1 Root CA ECC384 G1" if roots == "of the same name" else "Another CA")
    file = BUNDLE if roots == "shipped" else server.file("others.pem", impostor.pem)
    with pytest.raises(InfrastructureError, match="certificate verify failed") as refused:
        connect(server.target(roots=file))
    assert f"Fix: no root in {file} signed it" in str(refused.value)
    assert "STOPLINE_DB_SSLROOTCERT" in str(refused.value)


def test_a_bundle_that_is_not_there_is_no_reason_to_trust_anybody(server: TlsServer) -> None:
    """CO-14: verify-full without its file fails; it does not fall back."""
    with pytest.raises(InfrastructureError, match=r"nowhere\.pem.* does not exist"):
        connect(server.target(roots=server.folder / "nowhere.pem"))


def test_a_wrong_token_is_refused_by_the_server_and_not_repeated_in_the_error(
    server: TlsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stopline.store.connection.auth_token", lambda *_: f"{TOKEN}ab")
    with pytest.raises(InfrastructureError, match="password authentication failed") as refused:
        connect(server.target())
    assert TOKEN not in str(refused.value)


def test_a_connection_without_tls_is_refused_by_the_server_that_asks_for_it(server: TlsServer) -> None:
    plain = Target(HOST, PORT, "app", "stopline_worker")
    with pytest.raises(InfrastructureError, match=r"no encryption|no password supplied"):
        connect(plain)
