"""Checks one file of a release as a user meets it: installed into an empty environment, without a compiler, and run.

`python packaging/check_dist.py dist/FILE [--build NAME]`: the second word and the third are smoke.py's.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

SMOKE = Path(__file__).with_name("smoke.py")


def main() -> None:
    file, *flags = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK")}
        environment |= {"CC": "false", "CXX": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        environment.pop("PYTHONPATH", None)
        install = [str(python), "-m", "pip", "install", "--quiet", str(Path(file).resolve())]
        subprocess.run(install, check=True, env=environment, cwd=folder)
        listed = subprocess.run([str(python), "-m", "pip", "check"], env=environment, capture_output=True, text=True)
        if listed.returncode:
            raise SystemExit(f"check_dist: {listed.stdout}")
        subprocess.run([str(python), str(SMOKE), *flags], check=True, env=environment, cwd=folder)
    print(f"check_dist: {file} can be installed and serves")


if __name__ == "__main__":
    main()
