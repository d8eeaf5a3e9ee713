"""`python packaging/py_files.py OUT.zip`: the zip for `spark-submit --py-files`, made of the plain source.

Spark takes no wheels there, and Python imports no compiled modules from a zip. What the code imports beside itself
(pyarrow, numpy, hiredis) must be installed on the nodes.
"""

import sys
import zipfile
from pathlib import Path

PACKAGES = ("penstock", "pyspark_penstock")


def write(target: Path) -> None:
    root = Path(__file__).parent.parent
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for path in sorted((root / package).rglob("*.py")):
                archive.write(path, path.relative_to(root).as_posix())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
