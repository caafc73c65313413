"""Nodes with a config file, as an operator would run them for a server."""

import glob
import os
import signal
import subprocess

from sandbox import Failure, free_ports


class OperatedNodes:
    """Two nodes with a config file, as an operator would run them; by the server's user, since
    the secret is its."""

    def __init__(self, box, name, more=""):
        self.box = box
        self.name = name
        self.folder = os.path.join(box.dir, "cluster")
        self.config = os.path.join(self.folder, "rdmacc.conf")
        self.secret = os.path.join(self.folder, "secret")
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        self.processes = [None, None]
        box.make_private(self.folder)
        self.write(self.secret, os.urandom(24).hex())
        self.write(self.config, f"name = {name}\nnodes = {', '.join(self.addresses)}\n"
                                "secret_file = secret\nworkers_max = 40\nmemory_mb = 128\n" + more)

    def write(self, path, text, mode="600"):
        subprocess.run(self.box.as_server_user(["tee", path]), input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL, cwd="/")
        subprocess.run(self.box.as_server_user(["chmod", mode, path]), check=True, cwd="/")

    def launch(self, *numbers):
        for number in numbers:
            with open(os.path.join(self.box.dir, f"node{number}.log"), "a") as log:
                self.processes[number] = subprocess.Popen(
                    self.box.as_server_user([os.path.join(self.box.bin, "rdmacc_node"),
                                             f"--config={self.config}", f"--node={number}"]),
                    cwd="/", stdout=subprocess.PIPE, stderr=log, text=True)

    def await_ready(self, *numbers):
        for number in numbers:
            if self.processes[number].stdout.readline() != "ready\n":
                raise Failure(f"node {number} did not start: {self.log_text(number)[-1500:]}")

    def start(self, *numbers):
        self.launch(*numbers)
        self.await_ready(*numbers)

    def log_text(self, number):
        with open(os.path.join(self.box.dir, f"node{number}.log"), encoding="utf-8") as log:
            return log.read()

    def pid(self, number):
        """Of the node itself, which a program that changes users has as its child."""
        pid = self.processes[number].pid
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
        return int(children[0]) if children else pid

    def end(self, *numbers, by=signal.SIGTERM):
        for number in numbers:
            if self.processes[number] is not None:
                if self.processes[number].poll() is None:
                    os.kill(self.pid(number), by)
                self.processes[number].communicate(timeout=20)
                self.processes[number] = None

    def forget(self, what=""):
        for path in glob.glob(f"/dev/shm/rdmacc.tcp.{self.name}.{what}*"):
            os.unlink(path)

    def forget_memory_of(self, number):
        """As a crash of its host does. That of node 0 knows the members as well."""
        self.forget(f"node{number}")
        if number == 0:
            self.forget("members")

    def remove(self):
        self.end(0, 1)
        self.forget()

    def settings(self):
        return {"rdmacc.fabric": "tcp", "rdmacc.cluster": ", ".join(self.addresses),
                "rdmacc.cluster_name": self.name, "rdmacc.cluster_secret_file": self.secret,
                "rdmacc.node_memory": "128MB", "rdmacc.max_workers": 40}
