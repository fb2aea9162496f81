"""A real PostgreSQL server on a loopback port in a folder of its own, and files of databases."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "gr3at-s3cret"
_USERS = ("postgres", "nobody")
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "max_connections": "20",
    "shared_buffers": "16MB",
}


@dataclass(frozen=True)
class Server:
    port: int

    @property
    def uri(self):
        return f"postgresql://rare:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def connect(self):
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.uri)

    def put(self, name, table):
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="replace")
            connection.commit()

    def rows(self, sql):
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            found = cursor.fetchall()
            connection.commit()
            return found


@pytest.fixture(scope="session")
def postgresql():
    programs = _programs()
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="rareclass-postgresql-"))
    as_user = {}
    if user is not None:
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        as_user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    process = None
    try:
        (folder / "password").write_text(PASSWORD)
        os.chmod(folder / "password", 0o644)
        data = folder / "data"
        words = ["-D", data, "-U", "rare", "-A", "scram-sha-256", "--no-sync", "-E", "UTF8"]
        words += ["--locale=C", f"--pwfile={folder / 'password'}"]
        subprocess.run(
            [programs / "initdb", *words], check=True, capture_output=True, cwd="/", **as_user
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", data, "-p", str(port), *settings],
                stdout=log,
                stderr=log,
                cwd="/",
                **as_user,
            )
        server = Server(port)
        _wait_for(server, process, folder / "log")
        yield server
    finally:
        if process is not None:
            process.terminate()
            process.send_signal(3)  # SIGQUIT: at once
            process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(server, process, log):
    for _ in range(200):
        if process.poll() is not None:
            break
        try:
            server.rows("SELECT 1")
            return
        except Exception:
            time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start: {log.read_text()[-1000:]}")


def _programs():
    """The folder with `initdb`, which Debian keeps out of PATH."""
    pytest.importorskip("adbc_driver_postgresql", reason='no driver: pip install "rareclass[sql]"')
    on_path = shutil.which("initdb")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if on_path is None and not found:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return Path(on_path).resolve().parent if on_path else found[-1].parent


def _user():
    """Whom the server is to run as: it refuses root."""
    if os.geteuid() != 0:
        return None
    for user in _USERS:
        try:
            pwd.getpwnam(user)
        except KeyError:
            continue
        return user
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody: add one")


def sqlite_file(path, name, table):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi")
    with dbapi.connect(str(path)) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, table, mode="replace")
        connection.commit()
    return f"sqlite:///{path}"


def duckdb_file(path, name, table):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')
    return f"duckdb:///{path}"
