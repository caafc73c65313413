"""The Python that the distribution's packages are for, which need not be the one on the path."""

import os
import subprocess

from clients.side import Unavailable

PYTHON = "/usr/bin/python3"


def require(*modules):
    """Its path, when it has the modules; raises Unavailable."""
    if not os.path.exists(PYTHON):
        raise Unavailable(f"there is no {PYTHON}")
    for module in modules:
        if subprocess.run([PYTHON, "-c", f"import {module}"], stderr=subprocess.DEVNULL,
                          timeout=60).returncode != 0:
            raise Unavailable(f"{PYTHON} has no module {module} (packages-clients.txt)")
    return PYTHON
