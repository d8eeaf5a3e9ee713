"""The parts that the settings want beside the server in its process."""

from typing import TYPE_CHECKING

from penstock.config.settings import Settings
from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.server.run import Companion


def wanted(settings: Settings) -> "list[Companion]":
    """The companions to start with a server. UsageError if one needs a package that is not installed."""
    companions: list[Companion] = []
    if settings.number("metrics-port"):
        try:
            from penstock.observe.metrics_server import MetricsServer  # imported late: prometheus_client is an extra
        except ModuleNotFoundError as missing:
            raise needs_extra("metrics-port", "metrics", missing) from None
        companions.append(MetricsServer(settings))
    if settings.number("console-port"):
        try:
            from penstock.observe.console.console_server import ConsoleServer  # imported late: aiohttp is an extra
        except ModuleNotFoundError as missing:
            raise needs_extra("console-port", "console", missing) from None
        companions.append(ConsoleServer(settings))
    return companions


def needs_extra(what: str, extra: str, missing: ModuleNotFoundError) -> UsageError:
    """The error for a directive or a command of which a package of its extra is missing."""
    package = (missing.name or extra).partition(".")[0]
    return UsageError(
        f"{what} needs the package {package}: install the extra `{extra}` of penstock-server"
        f" (pip install '.[{extra}]' in a clone)"
    )
