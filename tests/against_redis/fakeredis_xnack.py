"""The XNACK dialogue against fakeredis's server, the only other one that knows the command.

By hand: `pip install fakeredis`, then `python -m tests.against_redis.fakeredis_xnack`. It prints both answers to every
line; docs/differences.md settles those on which they disagree.
"""

import sys
import threading

from tests.support.transcripts import read
from tests.support.wire import Connection


def main() -> int:
    from fakeredis import TcpFakeServer  # no dependency of the tests

    server = TcpFakeServer(("127.0.0.1", 0), server_type="redis", server_version=(8, 8))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    link = Connection("127.0.0.1", server.server_address[1])
    for step in read("xnack").steps:
        try:
            answer = str(link.ask(*step.words(lambda name: 0)))
        except (OSError, EOFError, ValueError) as failure:
            answer = repr(failure)
        if "Closed" in answer:
            link = Connection("127.0.0.1", server.server_address[1])
        written = step.replies[0].resp2
        sys.stdout.write(f"> {step.request}\n  written down: {written}\n  fakeredis:    {answer}\n")
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
