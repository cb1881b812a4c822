"""What of the host's proxies and certificates goes into a workspace with an open network."""

from __future__ import annotations

import datetime as dt
import os
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from satchel.execution.certificates import MOST_BYTES, open_network, proxy_settings, snapshot_certificates
from satchel.execution.workspace import Workspace, create_workspace, remove_workspace

DAY = dt.timedelta(days=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = create_workspace(str(tmp_path))
    yield made
    assert remove_workspace(made)


def authority(name: str, *, is_authority: bool = True) -> tuple[str, str]:
    """``(certificate, private key)`` as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return built.public_bytes(pem).decode(), private.decode()


def test_only_certificates_of_authorities_are_copied(tmp_path: Path, workspace: Workspace) -> None:
    one, key = authority("one")
    two, _ = authority("two")
    leaf, _ = authority("leaf", is_authority=False)
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(f"password = hunter2\n{key}{one}# secret\n{broken}{leaf}{two}{one}")

    made = snapshot_certificates(workspace, {"SSL_CERT_FILE": str(bundle), "HOME": "/root"})

    copy = Path(made.env["SSL_CERT_FILE"])
    assert list(made.env) == ["SSL_CERT_FILE"]
    text = copy.read_text()
    assert text == one + two
    assert ssl.create_default_context(cafile=str(copy)).cert_store_stats()["x509_ca"] == 2
    assert made.readable == (str(copy.parent),)
    assert copy.parent.parent == Path(workspace.root)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o444


def test_a_snapshot_does_not_change_with_the_bundle_and_the_same_one_is_kept_once(
    tmp_path: Path, workspace: Workspace
) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(authority("before")[0])
    first = snapshot_certificates(workspace, {"PIP_CERT": str(bundle), "CURL_CA_BUNDLE": str(bundle)})
    assert first.env["PIP_CERT"] == first.env["CURL_CA_BUNDLE"]
    kept = Path(first.env["PIP_CERT"]).read_text()
    bundle.write_text(authority("after")[0])
    second = snapshot_certificates(workspace, {"PIP_CERT": str(bundle)})
    assert second.env["PIP_CERT"] != first.env["PIP_CERT"]
    assert Path(first.env["PIP_CERT"]).read_text() == kept


def test_a_bundle_is_read_once(tmp_path: Path, workspace: Workspace) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("".join(authority(str(number))[0] for number in range(12)))
    first = snapshot_certificates(workspace, {"PIP_CERT": str(bundle)})
    assert Path(first.env["PIP_CERT"]).read_text() == bundle.read_text()
    was = bundle.stat()
    bundle.write_text("x" * was.st_size)
    os.utime(bundle, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert snapshot_certificates(workspace, {"PIP_CERT": str(bundle)}) == first


def test_what_is_no_bundle_is_left_out(tmp_path: Path, workspace: Workspace) -> None:
    key_alone = tmp_path / "key.pem"
    key_alone.write_text(authority("x")[1])
    large = tmp_path / "large.pem"
    with large.open("wb") as file:
        file.write(authority("x")[0].encode())
        file.truncate(MOST_BYTES + 1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (key_alone, large, pipe, tmp_path, tmp_path / "absent", "\0"):
        made = snapshot_certificates(workspace, {"REQUESTS_CA_BUNDLE": str(path)})
        assert (made.env, made.readable) == ({}, ())


def test_proxies_without_secrets_are_passed_on() -> None:
    given = {
        "HTTPS_PROXY": "http://proxy.example:3128",
        "http_proxy": "http://user:hunter2@proxy.example",
        "ALL_PROXY": "socks5://token@proxy.example",
        "all_proxy": "socks5h://proxy.example:1080/",
        "HTTP_PROXY": "http://proxy.example/?key=1",
        "https_proxy": "ftp://proxy.example",
        "NO_PROXY": "localhost,.example,10.0.0.0/8",
        "no_proxy": "user:x@host",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
    }
    assert proxy_settings(given) == {
        "HTTPS_PROXY": "http://proxy.example:3128",
        "all_proxy": "socks5h://proxy.example:1080/",
        "NO_PROXY": "localhost,.example,10.0.0.0/8",
    }


@pytest.mark.parametrize("value", ["http://proxy\n.example", "http://proxy.example\t:80", "http://pro\x1bxy.example"])
def test_a_proxy_is_one_printable_word(value: str) -> None:
    assert proxy_settings({"HTTPS_PROXY": value}) == {}


def test_an_open_network_has_both(tmp_path: Path, workspace: Workspace) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(authority("x")[0])
    made = open_network(workspace, {"NODE_EXTRA_CA_CERTS": str(bundle), "HTTPS_PROXY": "proxy.example:3128"})
    assert set(made.env) == {"NODE_EXTRA_CA_CERTS", "HTTPS_PROXY"}
    assert str(bundle) not in made.env.values()
    assert open_network(workspace, {}).env == {}
