"""fakeredis's TCP server on a port: `python -m bench.fakeserver PORT`."""

import sys

from fakeredis import TcpFakeServer

if __name__ == "__main__":
    server = TcpFakeServer(("127.0.0.1", int(sys.argv[1])), server_type="redis", server_version=(8, 8))
    server.daemon_threads = True
    server.serve_forever()
