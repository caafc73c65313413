#!/usr/bin/env python3
"""Whether the file layer forgets what no fsync has settled, and nothing else: small programs that do
what a server does with files, a cut, and what is left."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback

import roll_back

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("RDMACC_BUILD") or os.path.join(ROOT, "build/release")
LIBRARY = os.path.join(BUILD, "tests/power.so")
BEFORE = {"a": b"old content", "b": b"other", "d/c": b"deep"}
# In the tree: what a program does, and what a whole cut leaves of it.
PRELUDE = """
import ctypes, os
def fd(name, flags=os.O_RDWR): return os.open(name, flags, 0o600)
def sync(name):
    f = fd(name, os.O_RDONLY); os.fsync(f); os.close(f)
def put(name, text, flags=os.O_RDWR | os.O_CREAT):
    f = fd(name, flags); os.write(f, text); os.close(f)
"""
CASES = {
    "nothing": ("", {}),
    "a write": ("put('a', b'NEW')", {}),
    "a write of a program that may not read": ("put('a', b'NEW', os.O_WRONLY)", {}),
    "a write that is synced": ("put('a', b'NEW'); sync('a')", {"a": b"NEW content"}),
    "a write after a sync": ("put('a', b'NEW'); sync('a'); put('a', b'LATER')",
                             {"a": b"NEW content"}),
    "fdatasync": ("f = fd('a'); os.write(f, b'NEW'); os.fdatasync(f)", {"a": b"NEW content"}),
    "a write at a place": ("os.pwrite(fd('a'), b'XY', 4)", {}),
    "a write of several parts": ("os.pwritev(fd('a'), [b'12', b'345'], 9); os.writev(fd('b'), [b'6'])",
                                 {}),
    "a longer file": ("put('a', b'x', os.O_WRONLY | os.O_APPEND)", {}),
    "a longer file that is synced": ("put('a', b'x', os.O_WRONLY | os.O_APPEND); sync('a')",
                                     {"a": b"old contentx"}),
    "a shorter file": ("os.truncate('a', 3)", {}),
    "an empty file": ("put('a', b'x', os.O_WRONLY | os.O_TRUNC)", {}),
    "a gap": ("f = fd('a'); os.ftruncate(f, 3); os.pwrite(f, b'x', 8); os.fsync(f)",
              {"a": b"old\0\0\0\0\0x"}),
    "shorter, longer": ("f = fd('a'); os.ftruncate(f, 3); os.pwrite(f, b'x', 8)", {}),
    "a new file": ("put('n', b'x')", {}),
    "a new file that is synced": ("put('n', b'x'); sync('n')", {"n": b"x"}),
    "a new file in a synced folder": ("put('n', b'x'); sync('.')", {"n": b""}),
    "a new file in another folder": ("put('d/n', b'x'); sync('.')", {}),
    "a link": ("os.link('a', 'n')", {}),
    "a link whose file is synced": ("os.link('a', 'n'); sync('n')", {"n": b"old content"}),
    "a rename": ("os.rename('a', 'n')", {}),
    "a rename that is synced": ("os.rename('a', 'n'); sync('.')", {"a": None, "n": b"old content"}),
    "a rename over a file": ("os.rename('a', 'b')", {}),
    "a rename over a file that is synced": ("os.rename('a', 'b'); sync('.')",
                                            {"a": None, "b": b"old content"}),
    "a new file under another's name": ("put('n', b'new'); sync('n'); os.rename('n', 'a')",
                                        {"n": b"new"}),
    "durably": ("put('n', b'new'); sync('n'); os.rename('n', 'a'); sync('a'); sync('.')",
                {"a": b"new"}),
    "a removed file": ("os.unlink('a')", {}),
    "a removed file that is synced": ("os.unlink('a'); sync('.')", {"a": None}),
    "a removed file that is written": ("f = fd('a'); os.unlink('a'); os.write(f, b'NEW')", {}),
    "a file that is made again": ("os.unlink('a'); put('a', b'again')", {}),
    "a file that is made again and synced": ("os.unlink('a'); put('a', b'again'); sync('a')",
                                             {"a": b"again"}),
    "a new folder": ("os.mkdir('e'); put('e/n', b'x')", {}),
    "a new folder with a synced file": ("os.mkdir('e'); put('e/n', b'x'); sync('e/n')",
                                        {"e/n": b"x"}),
    "a removed folder": ("os.unlink('d/c'); os.rmdir('d')", {}),
    "a stream": ("c = ctypes.CDLL(None); c.fopen.restype = ctypes.c_void_p\n"
                 "s = ctypes.c_void_p(c.fopen(b'a', b'w')); c.fputs(b'stream', s); c.fclose(s)", {}),
    "a stream that is synced": ("c = ctypes.CDLL(None); c.fopen.restype = ctypes.c_void_p\n"
                                "s = ctypes.c_void_p(c.fopen(b'n', b'w')); c.fputs(b'stream', s)\n"
                                "c.fclose(s); sync('n')", {"n": b"stream"}),
    "two processes": ("p = os.fork()\nif p: os.waitpid(p, 0)\n"
                      "put('a', b'one' if p else b'two')\nif p: sync('a'); put('a', b'three')",
                      {"a": b"one content"}),
    "a process that is killed": ("put('a', b'NEW'); os.kill(os.getpid(), 9)", {}),
    "files elsewhere": ("put('../beside', b'x'); put('/dev/null', b'x')", {}),
}


def run(code, folder, preload=True):
    environment = dict(os.environ)
    if preload:
        environment |= {"LD_PRELOAD": LIBRARY, "POWER_TREE": os.path.join(folder, "tree"),
                        "POWER_JOURNAL": os.path.join(folder, "journal")}
    return subprocess.run([sys.executable, "-c", PRELUDE + code], env=environment, timeout=20,
                          cwd=os.path.join(folder, "tree"), stderr=subprocess.PIPE, text=True)


def write_tree(folder, files):
    for name, content in files.items():
        path = os.path.join(folder, "tree", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    roll_back.clear(os.path.join(folder, "journal"))


def read_tree(folder):
    found = {}
    tree = os.path.join(folder, "tree")
    for parent, _, names in os.walk(tree):
        for name in names:
            with open(os.path.join(parent, name), "rb") as file:
                found[os.path.relpath(file.name, tree)] = file.read()
    return found


def cut(folder, **options):
    return roll_back.PowerCut(os.path.join(folder, "tree"), os.path.join(folder, "journal"),
                              **options).roll_back()


def expect(got, expected, what):
    if got != expected:
        raise AssertionError(f"{what}: got {got!r}, expected {expected!r}")


def whole_cuts(folder):
    for name, (code, changes) in CASES.items():
        shutil.rmtree(os.path.join(folder, "tree"), ignore_errors=True)
        write_tree(folder, BEFORE)
        said = run(code, folder)
        expect(said.stderr, "", name)
        cut(folder)
        expected = {path: content for path, content in {**BEFORE, **changes}.items()
                    if content is not None}
        expect(read_tree(folder), expected, name)


def without_the_layer_nothing_is_forgotten(folder):
    write_tree(folder, BEFORE)
    run("put('a', b'NEW'); os.unlink('b')", folder, preload=False)
    cut(folder)
    expect(read_tree(folder), {"a": b"NEW content", "d/c": b"deep"}, "the tree")


def torn_pages(folder):
    """Sectors of two writes that no sync has settled: each of them is as after none, one or both."""
    seen = set()
    for seed in range(8):
        write_tree(folder, {"a": b"0" * 16384})
        run("f = fd('a'); os.write(f, b'1' * 16384); os.pwrite(f, b'2' * 8192, 4096)", folder)
        cut(folder, randomness=random.Random(seed))
        content = read_tree(folder)["a"]
        expect(len(content), 16384, "the length")
        for at in range(0, 16384, 512):
            sector = content[at:at + 512]
            expect(len(set(sector)), 1, f"bytes of sector {at // 512}")
            seen.add((4096 <= at < 12288, chr(sector[0])))
    expect(seen, {(False, "0"), (False, "1"), (True, "0"), (True, "1"), (True, "2")}, "sectors")


def sizes_and_names_in_part(folder):
    sizes, names = set(), set()
    for seed in range(24):
        shutil.rmtree(os.path.join(folder, "tree"), ignore_errors=True)
        write_tree(folder, {"a": b""})
        run("f = fd('a'); os.write(f, b'1' * 512); os.write(f, b'2' * 512)\n"
            "os.rename('a', 'b'); os.rename('b', 'c')", folder)
        cut(folder, randomness=random.Random(seed))
        (name, content), = read_tree(folder).items()
        expect(set(content) <= set(b"\x0012"), True, f"content {content!r}")
        sizes.add(len(content))
        names.add(name)
    expect((sizes, names), ({0, 512, 1024}, {"a", "b", "c"}), "what cuts leave")


TESTS = (whole_cuts, without_the_layer_nothing_is_forgotten, torn_pages, sizes_and_names_in_part)


def main():
    failed = 0
    for test in TESTS:
        folder = tempfile.mkdtemp(prefix="rdmacc-power-")
        try:
            test(folder)
            print(f"ok - {test.__name__}")
        except Exception:  # any error is a failure of this test, the others go on
            failed += 1
            print(f"not ok - {test.__name__}\n{traceback.format_exc()}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
