"""HTTP servers for tests, on a free port."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"


@asynccontextmanager
async def listening(runner: web.BaseRunner, certificate: Path | None = None) -> AsyncIterator[str]:
    """Run a server on this machine, with https if it has a certificate; yields its address."""
    scheme = "http"
    context = None
    if certificate:
        scheme = "https"
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0, ssl_context=context).start()
        yield f"{scheme}://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def make_certificate(folder: Path) -> Path:
    """Write a file with a self-signed certificate of this machine and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Server")])
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    certificate = builder.add_extension(addresses, critical=False).sign(key, SHA256())
    file = folder / "certificate.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(certificate.public_bytes(Encoding.PEM) + private)
    return file
