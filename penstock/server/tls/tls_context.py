"""The TLS contexts that the `tls-*` directives describe (Redis 8.6.3)."""

import ssl
import warnings
from pathlib import Path
from typing import Final

from penstock.config.settings import Settings
from penstock.errors import UsageError

VERSIONS: Final = {  # name in tls-protocols: version, and the option that switches it off
    "TLSV1": (ssl.TLSVersion.TLSv1, ssl.OP_NO_TLSv1),
    "TLSV1.1": (ssl.TLSVersion.TLSv1_1, ssl.OP_NO_TLSv1_1),
    "TLSV1.2": (ssl.TLSVersion.TLSv1_2, ssl.OP_NO_TLSv1_2),
    "TLSV1.3": (ssl.TLSVersion.TLSv1_3, ssl.OP_NO_TLSv1_3),
}
OLD_VERSIONS: Final = ("TLSV1", "TLSV1.1")
OLD_CIPHERS: Final = "DEFAULT@SECLEVEL=0"  # without it OpenSSL 3 knows no cipher of the old versions
VERIFYING: Final = {"yes": ssl.CERT_REQUIRED, "optional": ssl.CERT_OPTIONAL, "no": ssl.CERT_NONE}
NO_AUTHORITY: Final = (
    "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster, tls-replication or"
    " tls-auth-clients are enabled!"
)
BAD_VERSIONS: Final = (
    "Invalid tls-protocols specified. Use a combination of 'TLSv1', 'TLSv1.1', 'TLSv1.2' and 'TLSv1.3'."
)


class TlsError(Exception):
    """The directives do not make a context; the text is Redis's."""


def at_start(settings: Settings) -> ssl.SSLContext | None:
    """As `wanted`; UsageError if something is wrong."""
    try:
        return wanted(settings)
    except TlsError as problem:
        raise UsageError(f"{problem}\nFailed to configure TLS. Check logs for more info.") from None


def wanted(settings: Settings) -> ssl.SSLContext | None:
    """The context for connections that come, if any are to come with TLS; TlsError if any TLS directive is wrong."""
    if settings.yes("tls-replication") or settings.yes("tls-cluster"):
        build_outgoing(settings)
    return build(settings) if settings.number("tls-port") else None


def build(settings: Settings) -> ssl.SSLContext:
    """A context for connections that come; TlsError if files or values are wrong. It reads every file anew."""
    text = settings.text
    if not text("tls-cert-file"):
        raise TlsError("No tls-cert-file configured!")
    if not text("tls-key-file"):
        raise TlsError("No tls-key-file configured!")
    asked_for = text("tls-auth-clients")
    if asked_for != "no" and not text("tls-ca-cert-file") and not text("tls-ca-cert-dir"):
        raise TlsError(NO_AUTHORITY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _choose_versions(context, text("tls-protocols").upper().split())
    _load_certificate(context, text("tls-cert-file"), text("tls-key-file"), text("tls-key-file-pass"))
    if asked_for != "no":
        _trust(context, text("tls-ca-cert-file"), text("tls-ca-cert-dir"))
    context.verify_mode = VERIFYING[asked_for]
    _choose_ciphers(context, settings)
    context.options |= ssl.OP_NO_RENEGOTIATION  # what is written needs nothing of the client
    if not settings.yes("tls-session-caching"):
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def build_outgoing(settings: Settings) -> ssl.SSLContext:
    """A context for the link to a master (tls-replication) and for MIGRATE (tls-cluster).

    TlsError if files or values are wrong. The other side's certificate must be signed by an authority; its name is not
    looked at, as in Redis. A client certificate is the server's own if there is no other.
    """
    text = settings.text
    if not text("tls-ca-cert-file") and not text("tls-ca-cert-dir"):
        raise TlsError(NO_AUTHORITY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    _choose_versions(context, text("tls-protocols").upper().split())
    own = "tls-client-" if text("tls-client-cert-file") else "tls-"
    if text(own + "cert-file"):
        _load_certificate(context, text(own + "cert-file"), text(own + "key-file"), text(own + "key-file-pass"))
    _trust(context, text("tls-ca-cert-file"), text("tls-ca-cert-dir"))
    if text("tls-ciphers"):
        _choose_ciphers(context, settings)
    return context


def _choose_versions(context: ssl.SSLContext, names: list[str]) -> None:
    """The versions with these names; without any, what OpenSSL thinks safe: 1.2 and 1.3."""
    if any(name not in VERSIONS for name in names):
        raise TlsError(BAD_VERSIONS)
    if not names:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # an old version that is named is wanted
        wanted = sorted(VERSIONS[name][0] for name in names)
        context.minimum_version, context.maximum_version = wanted[0], wanted[-1]
        for name, (_, switched_off) in VERSIONS.items():
            if name not in names:
                context.options |= switched_off
    if any(name in OLD_VERSIONS for name in names):
        context.set_ciphers(OLD_CIPHERS)


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str, password: str) -> None:
    _require_file("certificate", certificate)
    _require_file("private key", key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(certificate)
    except OSError as problem:
        raise TlsError(f"Failed to load certificate: {certificate}: {_reason(problem)}") from None
    try:
        context.load_cert_chain(certificate, key, password)  # without a password it would ask at the terminal
    except OSError as problem:
        raise TlsError(f"Failed to load private key: {key}: {_reason(problem)}") from None


def _require_file(kind: str, path: str) -> None:
    try:
        Path(path).open("rb").close()
    except OSError as problem:
        raise TlsError(f"Failed to load {kind}: {path}: {problem.strerror}") from None


def _trust(context: ssl.SSLContext, file: str, folder: str) -> None:
    try:
        context.load_verify_locations(file or None, folder or None)
    except OSError as problem:
        raise TlsError(f"Failed to configure CA certificate(s) file/directory: {_reason(problem)}") from None


def _choose_ciphers(context: ssl.SSLContext, settings: Settings) -> None:
    ciphers, suites = settings.text("tls-ciphers"), settings.text("tls-ciphersuites")
    try:
        if ciphers:
            context.set_ciphers(ciphers)
    except ssl.SSLError:
        raise TlsError(f"Failed to configure ciphers: {ciphers}") from None
    if suites:
        _choose_suites(context, suites)
    groups = settings.text("tls-groups")
    if groups:
        _choose_groups(context, groups)
    if settings.yes("tls-prefer-server-ciphers"):
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    else:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    parameters = settings.text("tls-dh-params-file")
    try:
        if parameters:
            context.load_dh_params(parameters)
    except OSError as problem:
        raise TlsError(f"Failed to load DH params file: {parameters}: {_reason(problem)}") from None


def _choose_suites(context: ssl.SSLContext, suites: str) -> None:
    """The ciphers of TLS 1.3. Python before 3.15 cannot choose them: what is set must be what is used."""
    choose = getattr(context, "set_ciphersuites", None)
    try:
        if choose is None:
            raise ssl.SSLError
        choose(suites)
    except ssl.SSLError:
        raise TlsError(f"Failed to configure ciphersuites: {suites}") from None


def _choose_groups(context: ssl.SSLContext, groups: str) -> None:
    """The groups for the exchange of keys, parted by `:` as OpenSSL has them; Python before 3.15 takes one only."""
    choose = getattr(context, "set_groups", context.set_ecdh_curve)
    try:
        choose(groups)
    except (ssl.SSLError, ValueError):
        raise TlsError(f"Failed to configure groups: {groups}") from None


def _reason(problem: OSError) -> str:
    return (
        str(problem.reason)
        if isinstance(problem, ssl.SSLError) and problem.reason
        else problem.strerror or str(problem)
    )


def name_in_certificate(certificate: object) -> str:
    """The common name (CN) in the certificate that a client has shown, in the form of ssl's getpeercert; or ""."""
    subject = certificate.get("subject", ()) if isinstance(certificate, dict) else ()
    for part in subject:
        for field, value in part:
            if field == "commonName":
                return str(value)
    return ""
