"""The directives of a node of a cluster (`cluster-enabled yes`): whether it is one, and what it announces."""

import ipaddress
import re
from typing import Final

from penstock.config.directive_types import INT, BadValue, Choice, FilePath, Number, Text, YesNo
from penstock.config.directives import row

PORT: Final = 65535
LONGEST_HOSTNAME: Final = 256  # bytes


class HostName(Text):
    """Letters, digits, hyphens and dots, or nothing."""

    def one(self, word: str) -> str:
        if len(word) >= LONGEST_HOSTNAME:
            raise BadValue("Hostnames must be less than 256 characters")
        if not all(letter.isascii() and (letter.isalnum() or letter in "-.") for letter in word):
            raise BadValue("Hostnames may only contain alphanumeric characters, hyphens or dots")
        return word


class NodeName(Text):
    """Letters, digits, `-`, `.`, `/`, `_`, a backquote and what is not ASCII, or nothing (Redis 8.6.3)."""

    def one(self, word: str) -> str:
        if re.search(r"[\x00-,:-@\[-^{-\x7f]", word) is not None:
            raise BadValue("Announced human node name contained invalid character")
        return word


class Address(Text):
    """An IPv4 or IPv6 address, or nothing."""

    def one(self, word: str) -> str:
        if word:
            try:
                ipaddress.ip_address(word)
            except ValueError:
                raise BadValue("Cluster announce IP must be a valid IPv4 or IPv6 address") from None
        return word


CLUSTER: Final = (
    row(
        "cluster-enabled no",
        YesNo(),
        "Be a node of a cluster: keys of one request must be in one slot, and there is one database.",
        "immutable",
    ),
    row(
        "cluster-launcher 0",
        Number(0, INT),
        "Number of the socket by which `penstock cluster` gives its nodes the map; 0: this is the only node.",
        "immutable hidden",
    ),
    row("cluster-config-file nodes.conf", FilePath(), "File in dir that keeps the node's ID and slots.", "immutable"),
    row("cluster-port 0", Number(0, PORT), "Port of the cluster's bus; nothing listens there.", "immutable"),
    row("cluster-announce-ip", Address(), "Address told to clients; empty: they take the one that they asked."),
    row("cluster-announce-port 0", Number(0, PORT), "Port told to clients; 0: port."),
    row("cluster-announce-tls-port 0", Number(0, PORT), "TLS port told to clients; 0: tls-port."),
    row("cluster-announce-bus-port 0", Number(0, PORT), "Bus port told to clients; 0: cluster-port."),
    row("cluster-announce-hostname", HostName(), "Host name told to clients."),
    row("cluster-announce-human-nodename", NodeName(), "Name of the node in its file."),
    row(
        "cluster-preferred-endpoint-type ip", Choice("ip hostname unknown-endpoint"), "Kind of address told to clients."
    ),
    row("cluster-require-full-coverage yes", YesNo(), "Stop serving keys if slots are missing."),
    row("cluster-allow-reads-when-down no", YesNo(), "Allow reads while slots are missing."),
    row("cluster-allow-pubsubshard-when-down yes", YesNo(), "Allow SSUBSCRIBE and SPUBLISH while slots are missing."),
)
