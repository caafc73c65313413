"""Several sessions that run the same transactions, so that they lose against each other."""

import os
import re
import subprocess

from harness import equal

CLIENTS = 4


def hammer(box, protocol, script, mode="simple", settings="", each=60):
    """Each of CLIENTS runs the script so often; how many transactions failed."""
    path = os.path.join(box.dir, "hammer.pgbench")
    with open(path, "w") as file:
        file.write(script + "\n")
    os.chmod(path, 0o644)
    environment = box.environment()
    environment["PGOPTIONS"] = f"-c rdmacc.protocol={protocol} {settings}"
    done = subprocess.run(
        box.command("pgbench", "-n", "-c", str(CLIENTS), "-j", "1", "-t", str(each), "-M", mode,
                    "-f", path),
        env=environment, cwd="/", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=120)
    equal(done.returncode, 0, f"{protocol}, {script}: {done.stdout[-1500:]}")
    return int(re.search(r"number of failed transactions: (\d+)", done.stdout).group(1))


def value(box, key=1):
    return int(box.psql(f"SELECT v FROM t WHERE id = {key}"))


def retries(box, protocol):
    """Attempts that have lost and been followed by another one."""
    return int(box.psql(f"SELECT retries FROM rdmacc.stat_retries WHERE protocol = '{protocol}'"))
