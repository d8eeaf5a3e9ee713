"""Certificates for tests, made by the program `openssl`; tests that need them are skipped where there is none."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

DAYS: Final = "3650"
PASSWORD: Final = "open sesame"


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates. `file` is its own.

    is_bare: the certificates are as short as many private ones; clients that ask for what RFC 5280 wants refuse them.
    """

    def __init__(self, folder: Path, name: str = "authority", is_bare: bool = False) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("no program openssl to make certificates with")
        self._folder = folder
        self._name = name
        self._is_bare = is_bare
        self.file = folder / f"{name}.crt"
        self._key = folder / f"{name}.key"
        _make_key(self._key)
        usage = [] if is_bare else ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        own = ["-key", str(self._key), "-days", DAYS, "-subj", f"/CN={name}", "-out", str(self.file)]
        _openssl("req", "-x509", "-new", *own, *usage)

    def sign(self, name: str, password: str = "") -> Pair:
        """A certificate with a name as its subject; servers and clients at 127.0.0.1 may use it.

        password: the key is encrypted with it.
        """
        stem = f"{self._name}-{name}"
        key, request, made = (self._folder / f"{stem}.{kind}" for kind in ("key", "csr", "crt"))
        extensions = self._folder / "extensions"
        signer = "" if self._is_bare else "authorityKeyIdentifier=keyid\n"
        extensions.write_text(f"subjectAltName=DNS:localhost,IP:127.0.0.1\n{signer}")
        _make_key(key)
        _openssl("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", request)
        signing = ("-CA", self.file, "-CAkey", self._key, "-CAcreateserial", "-days", DAYS, "-extfile", extensions)
        _openssl("x509", "-req", "-in", request, *signing, "-out", made)
        if password:
            _openssl("pkcs8", "-topk8", "-in", key, "-out", key.with_suffix(".locked"), "-passout", f"pass:{password}")
            key = key.with_suffix(".locked")
        return Pair(made, key)


def _make_key(path: Path) -> None:
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)


def _openssl(*words: str | Path) -> None:
    made = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
