"""Folders that are renamed into place, on any file system that Spark can write to, through Hadoop's FileSystem API.

Where a rename is not atomic (plain S3), a crash within one leaves an incomplete folder: keep the pipeline's folder on a
disk or on HDFS there.
"""

import json
from typing import Any

from penstock.pipeline.errors import PipelineError


class BatchFolders:
    """Files below any path that Spark understands."""

    def __init__(self, spark: Any) -> None:
        self._jvm = spark._jvm
        self._conf = spark._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        return bool(self._of(path).exists(self._path(path)))

    def make(self, path: str) -> None:
        self._of(path).mkdirs(self._path(path))

    def delete(self, path: str) -> None:
        self._of(path).delete(self._path(path), True)

    def move(self, source: str, target: str) -> None:
        """PipelineError where `target` is there already, or the file system refuses."""
        if self.exists(target) or not self._of(source).rename(self._path(source), self._path(target)):
            raise PipelineError(f"{source} cannot be renamed to {target}")

    def names(self, path: str) -> list[str]:
        """What is in a folder; [] where there is none."""
        if not self.exists(path):
            return []
        return sorted(status.getPath().getName() for status in self._of(path).listStatus(self._path(path)))

    def write(self, path: str, row: dict[str, Any]) -> None:
        """One line of JSON in a file, which is replaced."""
        file = self._of(path).create(self._path(path), True)
        file.write(bytearray(json.dumps(row, sort_keys=True).encode() + b"\n"))
        file.close()

    def read(self, path: str) -> dict[str, Any]:
        file = self._of(path).open(self._path(path))
        try:
            found: dict[str, Any] = json.loads(bytes(file.readAllBytes()))
            return found
        finally:
            file.close()

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _of(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._conf)
