"""Programs on Node's most used libraries (clients/node), which npm installs below build/clients."""

import json
import os
import shutil
import subprocess

from clients.side import Unavailable, output_of
from sandbox import ROOT

SOURCE = os.path.join(ROOT, "scripts/clients/node")
PLACE = os.path.join(ROOT, "build/clients/node")
INSTALL_S = 300
LIMIT_S = 300


def install():
    """The libraries, in the versions that package-lock.json has fixed."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Unavailable("there is no node or no npm (packages-clients.txt)")
    os.makedirs(PLACE, exist_ok=True)
    for name in os.listdir(SOURCE):
        if name != "node_modules":
            shutil.copy(os.path.join(SOURCE, name), PLACE)
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=PLACE, text=True,
                          capture_output=True, timeout=INSTALL_S)
    if done.returncode != 0:
        raise Unavailable("npm: " + (done.stderr.strip().split("\n") or [""])[-1])


class Node:
    settings = {"rdmacc.lock_writes": "at_write"}

    def __init__(self, name):
        self.name = name

    def prepare(self, whole):
        del whole
        install()

    def run(self, side, whole):
        del whole
        printed = output_of(["node", self.name + ".js"], side.environment(), PLACE, LIMIT_S)
        lines = [json.loads(line) for line in printed.splitlines() if line.startswith('{"name"')]
        return {line["name"]: json.dumps(line["result"]) for line in lines}

    def notes(self):
        return []


NODE_CLIENTS = [Node(name) for name in ("pool", "knex", "sequelize", "typeorm")]
