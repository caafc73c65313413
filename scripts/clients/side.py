"""One of the two sides that a client runs on: a database of its own, whose tables are heaps or
rdmacc's because of default_table_access_method."""

import os
import signal
import subprocess

SIDES = ("heap", "rdmacc")
SETTINGS = {"heap": {"default_table_access_method": "heap"},
            "rdmacc": {"default_table_access_method": "rdmacc"}}


class Unavailable(Exception):
    """Why a client cannot be run here, in one sentence."""


class Side:
    def __init__(self, box, access_method, client):
        self.box = box
        self.access_method = access_method
        self.database = f"{client.name}_{access_method}"
        self.settings = dict(SETTINGS[access_method])
        if access_method != "heap":
            self.settings.update(client.settings)
        box.psql(f"DROP DATABASE IF EXISTS {self.database}")
        box.psql(f"CREATE DATABASE {self.database}")
        for setting, value in self.settings.items():
            box.psql(f"ALTER DATABASE {self.database} SET {setting} = {value}")

    def environment(self, **more):
        return dict(self.box.environment(self.database), **more)

    def psql(self, sql):
        return self.box.psql(sql, self.database)


def output_of(command, environment, cwd, limit_s):
    """What a program prints, errors included. It and its children are killed at the limit."""
    process = subprocess.Popen(command, env=environment, cwd=cwd, text=True, errors="replace",
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.communicate(timeout=limit_s)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + f"\nno end within {limit_s} s\n"
