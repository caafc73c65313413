"""Sources that are compiled together, and have functions of the same name."""

import re

FUNCTION = re.compile(r"^(?=\w)(?:[\w:<>,*& ]+[ *&])(\w+)\(([^;{}]*)\) \{", re.M)
COMPILED_TOGETHER = re.compile(r"^\s*rdmacc_(?:compile|tests)_together\((\w+)((?:\s[^)]*)?)\)", re.M)
TOGETHER_BY_LIST = re.compile(r"foreach\(together ([\w\s]+)\)")
# Where the sources of a target are.
FOLDERS = {
    "rdmacc_rdma": r"rdma/(?!base/)",
    "rdmacc_calvin": r"engine/protocols/calvin/",
    "rdmacc_check_lib": r"engine/check/",
    "rdmacc_node_lib": r"engine/node/",
    "rdmacc_bench_lib": r"engine/bench/",
    "sim_test": r"tests/sim/(?:mutants/)?\w+_test\.cc",
}
TEST_FOLDER = re.compile(r"rdmacc_test\((\w+) (\S+)")


def check_namesakes(sources, library_build, test_build):
    """Where sources are compiled as one, a call of a function could be one of another source's
    function of that name. With the same parameters the compiler finds it. The last two say which
    sources these are: CMakeLists.txt, and that of the tests."""
    together, alone = set(), set()
    for folder, build in (("", library_build), ("tests/", test_build)):
        for target, paths in COMPILED_TOGETHER.findall(build):
            together.add(target)
            alone |= {folder + path for path in paths.split() if path.endswith(".cc")}
        for targets in TOGETHER_BY_LIST.findall(build):
            together |= {"rdmacc_" + target for target in targets.split()}
    folders = dict(FOLDERS)
    for target, folder in TEST_FOLDER.findall(test_build):
        folders[target] = f"tests/{folder}/"
    for target in together - folders.keys():
        folders[target] = f"engine/{target.removeprefix('rdmacc_')}/"
    known = {}
    for path, text in sorted(sources.items()):
        if path in alone or not path.endswith(".cc"):
            continue
        target = next((target for target, where in folders.items() if re.match(where, path)), None)
        if target not in together:
            continue
        for name, parameters in FUNCTION.findall(text):
            if name.startswith("TEST"):
                continue
            parameters = " ".join(parameters.split())
            other = known.setdefault((target, name), (path, parameters))
            if other[0] != path and other[1] != parameters:
                yield f"{path}: {name}() has other parameters in {other[0]}, with which it is compiled"
