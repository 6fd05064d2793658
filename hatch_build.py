"""Record the commit that a wheel or source archive is built from, so that results can name it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):
    """Put the output of ``git describe`` into the package; do nothing outside a repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add ``icl_estimators/_data/commit.txt`` to what is built."""
        if not (Path(self.root) / ".git").exists():
            return
        command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        try:
            found = subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return
        self._folder = tempfile.TemporaryDirectory()
        written = Path(self._folder.name) / "commit.txt"
        written.write_text(found.stdout.strip() + "\n", encoding="utf-8")
        build_data["force_include"][str(written)] = "icl_estimators/_data/commit.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary file of the build."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            folder.cleanup()
