"""Test sources that are compiled together, and have functions of the same name."""

import os
import re

FUNCTION = re.compile(r"^(?=\w)(?:[\w:<>,*& ]+[ *&])(\w+)\(([^;{}]*)\) \{", re.M)
COMPILED_TOGETHER = re.compile(r"rdmacc_compile_together\((\w+)([^)]*)\)")
TEST_FOLDER = re.compile(r"rdmacc_test\((\w+) (\S+)")


def check_namesakes(sources, build):
    """Where sources are compiled as one, a call of a function could be one of another source's
    function of that name. With the same parameters the compiler finds it. `build`: what says which
    sources these are (tests/CMakeLists.txt)."""
    folders = {"tests/" + folder: target for target, folder in TEST_FOLDER.findall(build)}
    folders["tests/sim"] = "sim_test"
    alone = {"tests/" + path for _, paths in COMPILED_TOGETHER.findall(build)
             for path in paths.split() if path.endswith(".cc")}
    together = {target for target, _ in COMPILED_TOGETHER.findall(build)}
    known = {}
    for path, text in sorted(sources.items()):
        target = folders.get(os.path.dirname(path))
        if target not in together or path in alone or not path.endswith(".cc"):
            continue
        if target == "sim_test" and not path.endswith("_test.cc"):
            continue
        for name, parameters in FUNCTION.findall(text):
            if name.startswith("TEST"):
                continue
            parameters = " ".join(parameters.split())
            other = known.setdefault((target, name), (path, parameters))
            if other[0] != path and other[1] != parameters:
                yield f"{path}: {name}() has other parameters in {other[0]}, with which it is compiled"
