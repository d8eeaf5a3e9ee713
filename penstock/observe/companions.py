"""What the settings want beside the server in its process."""

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
            raise UsageError(f"metrics-port needs the package {missing.name}: install the extra `metrics`") from None
        companions.append(MetricsServer(settings))
    if settings.number("console-port"):
        try:
            from penstock.observe.console.console_server import ConsoleServer  # imported late: aiohttp is an extra
        except ModuleNotFoundError as missing:
            raise UsageError(f"console-port needs the package {missing.name}: install the extra `console`") from None
        companions.append(ConsoleServer(settings))
    return companions
