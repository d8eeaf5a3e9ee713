"""`python -m bench NAME [options]`: one of the scripts in this folder."""

import runpy
import sys

SCRIPTS = ("group_commit", "load_speed", "rewrite_latency")


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else SCRIPTS[0]
    if name not in SCRIPTS:
        sys.stderr.write(f"no benchmark is called {name!r}: there are {', '.join(SCRIPTS)}\n")
        return 2
    sys.argv[:] = [f"bench.{name}", *sys.argv[2:]]
    runpy.run_module(f"bench.{name}", run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
