"""Power cuts and failing disks for the tests of whole servers: the server runs on the file layer of
tests/power, which keeps what was written since the last fsync apart; a cut forgets it.

POWER_SEED in the environment repeats what cuts forget, as far as the server does the same."""

import glob
import mmap
import os
import random
import re
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../power"))
import roll_back  # noqa: E402

PLAN = struct.Struct("=IiIIqqQ128s")
WRITE, EXTEND, FSYNC, CREATE = 1, 2, 4, 8
ALWAYS = 1 << 60
WHOLE, TORN_SECTORS, TORN_BLOCKS = "whole", "torn sectors", "torn blocks"
KINDS = (WHOLE, TORN_SECTORS, TORN_BLOCKS)
SECTOR = {WHOLE: 512, TORN_SECTORS: 512, TORN_BLOCKS: 4096}


class Power:
    def __init__(self, box):
        self.box = box
        self.journal = os.path.join(box.dir, "power")
        self.seed = int(os.environ.get("POWER_SEED", str(random.randrange(1 << 30))))
        self.randomness = random.Random(self.seed)
        self.kind = None  # of the next cuts; None: drawn for each
        self.cuts = 0
        self.last = None  # what the last cut forgot
        self.total = roll_back.Forgotten()
        library = os.path.join(box.dir, "power.so")
        shutil.copyfile(os.path.join(box.build, "tests/power.so"), library)
        os.chmod(library, 0o755)
        self.environment = {"LD_PRELOAD": library, "POWER_TREE": box.data,
                            "POWER_JOURNAL": self.journal}
        self.begin()
        print(f"  POWER_SEED={self.seed}", flush=True)

    def begin(self):
        """The tree as it is now is on disk."""
        roll_back.clear(self.journal)
        for folder in (self.journal, *(os.path.join(self.journal, name)
                                       for name in ("files", "kept"))):
            self.box.make_private(folder)
        with open(os.path.join(self.journal, "faults"), "wb") as file:
            file.write(PLAN.pack(0, 0, 0, 0, 0, 0, 0, b""))
        owner = os.stat(self.journal)
        os.chown(file.name, owner.st_uid, owner.st_gid)

    def cut(self):
        """No process is left. Memory is lost as well, and with it that of the nodes."""
        kind = self.kind or self.randomness.choice(KINDS)
        self.last = roll_back.PowerCut(self.box.data, self.journal,
                                       None if kind == WHOLE else self.randomness,
                                       SECTOR[kind]).roll_back()
        self.cuts += 1
        for what in ("files", "sectors", "names"):
            setattr(self.total, what, getattr(self.total, what) + getattr(self.last, what))
        cluster = os.path.join(self.box.data, "rdmacc_cluster")
        if os.path.exists(cluster):
            with open(cluster) as file:
                name = re.search(r"^name (\w+)$", file.read(), re.M)
            for path in glob.glob(f"/dev/shm/*{name.group(1)}*") if name else ():
                os.unlink(path)
        print(f"  power cut, {kind}: {self.last} forgotten", flush=True)

    # ---- A disk that fails

    def fail(self, error, operations, pattern, skip=0, times=ALWAYS):
        """After `skip` of such operations on such files, so many fail."""
        self.write_plan(PLAN.pack(0, 0, 0, 0, 0, 0, 0, b""))
        self.write_plan(PLAN.pack(1, error, operations, 0, skip, times, 0, pattern.encode()))

    def heal(self):
        """How often it has struck."""
        with open(os.path.join(self.journal, "faults"), "rb") as file:
            struck = PLAN.unpack(file.read())[6]
        self.write_plan(PLAN.pack(0, 0, 0, 0, 0, 0, 0, b""))
        return struck

    def struck(self):
        with open(os.path.join(self.journal, "faults"), "rb") as file:
            return PLAN.unpack(file.read())[6]

    def write_plan(self, plan):
        """What arms it comes last."""
        with open(os.path.join(self.journal, "faults"), "r+b") as file:
            shared = mmap.mmap(file.fileno(), PLAN.size)
            shared[4:PLAN.size] = plan[4:]
            shared[:4] = plan[:4]
            shared.close()


def attach(box):
    """Before its first start; with fsync, without which all would be forgotten."""
    box.settings["fsync"] = "on"
    box.power = Power(box)
    box.server_environment = box.power.environment


def cut(box):
    """Of a server that runs on the layer; nothing else to do of others."""
    if hasattr(box, "power"):
        box.power.cut()
