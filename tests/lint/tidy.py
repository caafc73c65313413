#!/usr/bin/env python3
"""The house rules that a machine can check, over every file that git knows or would add: which
folders may include which, names that only one place may use, sizes, words. One line per broken
rule, and a last line "N passed, N failed" (a check is one rule)."""

import os
import re
import subprocess
import sys

from check_density import check_density
from check_namesakes import check_namesakes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINES_MAX = 400
ROOM_FILES_MAX = 45
# Where every folder is a room with a README that says its rank.
ROOMED = ("rdma/", "engine/storage/", "engine/txn/", "pg_rdmacc")
COLUMNS_MAX = 100
BYTES_MAX = 256 * 1024

# All folders of sources from the bottom up: a file includes its own folder and those before it,
# so that no two folders include each other.
ROOMS = (
    "rdma/base", "rdma/fabric", "rdma/coroutine", "rdma/rpc", "rdma/bootstrap", "rdma/shm",
    "rdma/sim", "rdma/tcp", "rdma/verbs", "rdma/open",
    "engine/api", "engine/storage/layout", "engine/storage/wire", "engine/storage/owner",
    "engine/cluster", "engine/log", "engine/durable", "engine/txn/rule", "engine/txn/driver", "engine/txn/stages",
    "engine/txn/remote", "engine/txn/transaction", "engine/protocols",
    "engine/protocols/calvin", "engine/stats", "engine/check", "engine", "engine/index",
    "engine/verify", "engine/workloads", "engine/node", "engine/report", "engine/bench/measure", "engine/bench",
    "pg_rdmacc/bridge", "pg_rdmacc/server", "pg_rdmacc/wal", "pg_rdmacc/xact",
    "pg_rdmacc/recovery", "pg_rdmacc/codec",
    "pg_rdmacc/relation", "pg_rdmacc/row", "pg_rdmacc/index", "pg_rdmacc/ddl", "pg_rdmacc/table",
    "pg_rdmacc/plan", "pg_rdmacc/query", "pg_rdmacc/sql", "pg_rdmacc/workload", "pg_rdmacc",
    "tests/coverage", "tests/durable", "tests/guide", "tests/explore", "tests/fabric", "tests/fuzz", "tests/workloads",
    "tests/power", "tests/sim/aim", "tests/sim/door", "tests/sim/growing", "tests/sim/outside", "tests/sim/second_life", "tests/sim",
    "tests/sim/mutants", "tests/sim/campaign", "tests/mutation",
    "tests/unit/bench", "tests/unit/check", "tests/unit/cluster", "tests/unit/engine",
    "tests/unit/calvin", "tests/unit/durable", "tests/unit/index", "tests/unit/log", "tests/unit/report", "tests/unit/scan", "tests/unit/server",
    "tests/unit/stats", "tests/unit/storage", "tests/unit/verify", "tests/unit/workloads",
    "tests/verbs",
)
RANKS = {room: rank for rank, room in enumerate(ROOMS)}
# What PostgreSQL's side sees of the engine, too: these include each other and C's headers alone.
PLAIN_HEADERS = {"engine/api/plain_data.h", "rdma/base/code.h", "rdma/base/verb_counters.h"}
C_HEADERS = {"cstddef", "cstdint"}
# What pg_rdmacc's bridge may include of the engine.
BRIDGE_HEADERS = {"rdma/base/check.h", "engine/api/plain_data.h", "engine/session.h", "engine/protocols/registry.h", "engine/protocols/presets.h",
                  "rdma/open/open_fabric.h",
                  "rdma/bootstrap/cluster_watch.h", "rdma/bootstrap/cluster_config.h",
                  "rdma/bootstrap/loopback_files.h", "engine/stats/shared_stats.h",
                  "engine/stats/stats_recorder.h", "engine/index/ordered_index.h",
                  "engine/index/index_loader.h", "engine/index/index_scan.h", "engine/verify/verify.h"}
SERVER_HEADERS = re.compile(r'#include "(postgres|fmgr|miscadmin|executor/|access/|utils/|storage/'
                            r"(ipc|lwlock|latch|shmem|procarray|fd)|catalog/|commands/|nodes/)")
PROTOCOL_NAMES = re.compile(r"\bProtocol::k(\w+)")
PRIMITIVE_NAMES = re.compile(r"\bPrimitive::k(Rpc|OneSided)\b")
# What a citation with a section number may name besides a page of docs/.
PAPERS = ("RCC", "RCBench", "DrTM", "DrTM+H", 'Godefroid, "Partial-Order Methods", 1996,')
SECTION = r"§(\d+(?:\.\d+)*)"
BANNED = re.compile(r"\b(TODO|FIXME|XXX|HACK|tmp|new2|foobar)\b")
# Transactions, sessions, workers and nodes are no persons: sentences name which of them it is.
PERSONS = re.compile(r"\b(who|whoever|nobody|somebody|anybody|everybody)\b", re.I)
PERSONS_SKIP = ("tests/lint/", "tests/pg_suite/", "sql/", "expected/", "specs/")
# Names that docs/glossary.md has replaced.
OLD_NAMES = re.compile(
    r"\b(give_way|kFirstLook|kLastLook|kReadBetweenLooks|Driven|EntryWish|settle_index|"
    r"kMethodSettleIndex|impatient|peek_key|PeekCache|forget_peeked|unsure_|"
    r"unsure_of_shares_|kSharesMax|lost_shares|shares_lost|GatePass|enter_alone|kAskedAlone|"
    r"kPassageUsMax|passage_lasts|Leftovers?|leftovers_|TcpDoor|TcpGuest|tcp_door|tcp_guest|"
    r"verbs_meeting|gate_passage|bridge_forsake|RdmaccKeyOffer|key_moves|"
    r"share_sweep|ShareSweep(er)?|share_clearing|sharers_|kPlaceLengthBytes|kPlacedTable|"
    r"kStrangersMax)\b|"
    # Exclusive gate mode; reader counts; admission.
    r"\b(?:wants? to be alone|the gate alone|(?:gate|cluster) to (?:itself|themselves)|"
    r"lost shares|shares (?:back|any more)|the one door|at the door)\b")
WORDS_SKIP = ("tests/lint/", "docs/", ".md", ".gitignore", "scripts/", "tests/tap/")


def listed_files():
    output = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                            check=True, capture_output=True).stdout
    return sorted(path for path in output.decode().split("\0")
                  if path and os.path.isfile(os.path.join(ROOT, path)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def code_lines(text):
    """(number, line) without comments, roughly: enough to look for names."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    for number, line in enumerate(text.split("\n"), 1):
        yield number, line.split("//")[0]


def check_layers(sources):
    for path, text in sources.items():
        room = os.path.dirname(path)
        if room not in RANKS:
            continue  # which check_rooms says
        for number, line in enumerate(text.split("\n"), 1):
            match = re.match(r'#include "((?:rdma|engine|pg_rdmacc|tests)/[^"]+)"', line)
            if not match:
                continue
            included = os.path.dirname(match.group(1))
            if included == room:
                continue
            if included not in RANKS:
                yield f"{path}:{number}: {included} has no rank"
            elif room.startswith("pg_rdmacc") and not included.startswith("pg_rdmacc"):
                if room != "pg_rdmacc/bridge":
                    yield f"{path}:{number}: only pg_rdmacc/bridge sees the engine"
                elif match.group(1) not in BRIDGE_HEADERS:
                    yield f"{path}:{number}: pg_rdmacc sees the engine through its session alone"
            elif RANKS[included] >= RANKS[room]:
                yield f"{path}:{number}: {room} must not include {match.group(1)}"


def check_plain_data(sources):
    for path in sorted(PLAIN_HEADERS):
        if path not in sources:
            yield f"PLAIN_HEADERS: there is no {path}"
            continue
        for included in re.findall(r'^#include [<"]([^>"]+)[>"]', sources[path], re.M):
            if included not in PLAIN_HEADERS | C_HEADERS:
                yield f"{path}: is seen beside postgres.h and must not include {included}"


def check_rooms(sources):
    counts = {}
    for path, text in sources.items():
        folder = os.path.dirname(path)
        counts[folder] = counts.get(folder, 0) + 1
    for folder, count in sorted(counts.items()):
        if folder not in RANKS:
            yield f"{folder}: has no rank"
        if count > ROOM_FILES_MAX:
            yield f"{folder}: {count} source files, {ROOM_FILES_MAX} are the limit"
        if folder.startswith(ROOMED) and not os.path.isfile(os.path.join(ROOT, folder, "README.md")):
            yield f"{folder}: has no README.md"
    for folder in RANKS:
        if folder not in counts:
            yield f"RANKS: {folder} has no source files"


def check_room_readmes(sources):
    """Every file of a room is named by its README, which says the room's rank in its tree."""
    for tree in ROOMED:
        rooms = sorted((folder for folder in RANKS if folder.startswith(tree)), key=RANKS.get)
        for number, folder in enumerate(rooms, 1):
            readme = os.path.join(folder, "README.md")
            if folder == tree or not os.path.isfile(os.path.join(ROOT, readme)):
                continue
            text = read(readme)
            if f"Rank {number} of {len(rooms)}" not in text:
                yield f'{readme}: does not say "Rank {number} of {len(rooms)}"'
            for path in sorted(sources):
                name = os.path.splitext(os.path.basename(path))[0]
                if os.path.dirname(path) == folder and not re.search(rf"`{name}(\.h)?`", text):
                    yield f"{readme}: does not name {name}"


def check_server_headers(sources):
    for path, text in sources.items():
        inside = path.startswith("pg_rdmacc/")
        bridge = re.match(r"pg_rdmacc/(bridge/|server/node_process)", path)
        if inside and not bridge:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if SERVER_HEADERS.match(line):
                yield f"{path}:{number}: only pg_rdmacc's glue sees PostgreSQL's headers"


def check_verbs_header(sources):
    for path, text in sources.items():
        if "infiniband/verbs.h" in text and not path.startswith("rdma/verbs/"):
            yield f"{path}: only rdma/verbs/ sees libibverbs"


def check_fabric_choice(sources):
    """The simulator's cluster is one object, which the simulation that drives it makes."""
    for path, text in sources.items():
        if not path.startswith("engine/"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if re.match(r'#include "rdma/(shm|tcp|verbs)/', line):
                yield f"{path}:{number}: only rdma/open/open_fabric knows which fabric it is"


def check_protocol_names(sources):
    for path, text in sources.items():
        if not path.startswith(("engine/", "rdma/")) or path.startswith("engine/protocols/"):
            continue
        if path.startswith(("engine/txn/rule/stage.", "engine/bench/", "engine/workloads/")):
            continue
        named = {match.group(1) for _, line in code_lines(text)
                 for match in PROTOCOL_NAMES.finditer(line)}
        if len(named) > 1:
            yield f"{path}: names several protocols ({', '.join(sorted(named))})"


def check_primitive_names(sources):
    for path, text in sources.items():
        if not path.startswith(("engine/", "rdma/", "pg_rdmacc/")):
            continue
        if path.startswith(("engine/txn/remote/carry_out", "engine/protocols/calvin/carry_out",
                            "engine/txn/rule/stage.", "engine/bench/report")):
            continue
        for number, line in code_lines(text):
            if PRIMITIVE_NAMES.search(line):
                yield f"{path}:{number}: only carry_out names primitives"


def check_compiled_rules(sources):
    for path, text in sources.items():
        if not path.startswith("engine/"):
            continue
        for match in re.finditer(r"\b(?:driven|read|scanned|locked|checked)_by<(\w+)[,>]", text):
            body = rf"\bStep {match.group(1)}\([^;{{]*\) {{"
            here = re.search(body, text) or re.search(body, sources["engine/txn/rule/rule.h"])
            if not here and match.group(1) not in ("rule", "kRule"):
                yield (f"{path}:{line_of(text, match.start())}: {match.group(1)} is compiled without "
                       "its body (engine/protocols/README.md)")


def check_lengths(sources):
    for path, text in sources.items():
        count = text.count("\n")
        if count > LINES_MAX:
            yield f"{path}: {count} lines, {LINES_MAX} are the limit"


def check_columns(sources):
    for path, text in sources.items():
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > COLUMNS_MAX and "http" not in line:
                yield f"{path}:{number}: {len(line)} columns, {COLUMNS_MAX} are the limit"


def check_words(sources):
    for path, text in sources.items():
        if any(part in path for part in WORDS_SKIP):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            match = BANNED.search(line)
            if match:
                yield f'{path}:{number}: the word "{match.group()}"'


def check_persons(texts, pages):
    """Sources, READMEs and docs/."""
    readmes = {path: text for path, text in pages.items()
               if path.startswith("docs/") or os.path.basename(path) == "README.md"}
    for path, text in {**texts, **readmes}.items():
        if path.startswith(PERSONS_SKIP):
            continue
        for match in PERSONS.finditer(text):
            yield f'{path}:{line_of(text, match.start())}: "{match.group()}"'


def check_old_names(texts, pages):
    for path, text in {**texts, **pages}.items():
        if path.startswith("tests/lint/"):
            continue
        for match in OLD_NAMES.finditer(text):
            yield f"{path}:{line_of(text, match.start())}: {match.group()}, see docs/glossary.md"


def check_headers(sources):
    for path, text in sources.items():
        if path.endswith(".h") and not re.search(r"^#pragma once$", text, re.M):
            yield f"{path}: no #pragma once"


def check_using_namespace(sources):
    for path, text in sources.items():
        for number, line in code_lines(text):
            if re.search(r"\busing namespace\b", line):
                yield f"{path}:{number}: using namespace"


def without_code_blocks(text):
    """Markdown with as many lines, those of fenced and indented code empty."""
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m.group().count("\n"), text, flags=re.S | re.M)
    return re.sub(r"^ {4}.*$", "", text, flags=re.M)


def headings(text):
    return re.findall(r"^#+ +(.+?) *$", without_code_blocks(text), re.M)


def section_numbers(text):
    numbers = (re.match(r"(\d+(?:\.\d+)*)\.? ", heading) for heading in headings(text))
    return {match.group(1) for match in numbers if match}


def anchor_of(heading):
    """As GitHub and GitLab name a heading in a link."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def cited_page(path, before, pages):
    """The page that the words before a section sign name: one of `pages`, "" for a paper's, None if
    they name nothing. Words may be on the line above, and a page's own sections need none."""
    before = re.sub(r"\s+(?:(?://|#|\*)\s*)?", " ", before[-200:].rstrip("`") + " ")
    before = re.sub(SECTION + r"(?:,| and| to)? ", "", before).rstrip()
    if any(re.search(r"(^|[\s(])" + re.escape(paper) + r"$", before) for paper in PAPERS):
        return ""
    named = re.search(r"([\w/.-]+\.md)$", before)
    if named is None:
        by_name = re.search(r"\b([A-Z]{5,})$", before)
        page = f"docs/{by_name.group(1).lower()}.md" if by_name else None
        return page or (path if path in pages else None)
    beside = os.path.normpath(os.path.join(os.path.dirname(path), named.group(1)))
    return beside if beside in pages else named.group(1)


def check_citations(texts, pages):
    """A section sign names a section that is there; pages of docs/ that sources name exist."""
    numbers = {page: section_numbers(text) for page, text in pages.items()}
    for path, text in {**texts, **pages}.items():
        if path.startswith("tests/lint/"):
            continue
        for sign in re.finditer("§", text):
            where = f"{path}:{line_of(text, sign.start())}"
            number = re.compile(SECTION).match(text, sign.start())
            page = cited_page(path, text[:sign.start()], pages)
            if number is None or page is None:
                yield f"{where}: a section sign without a number or a page"
            elif page and number.group(1) not in numbers.get(page, ()):
                yield f"{where}: {page} has no section {number.group(1)}"
        for named in re.finditer(r"\bdocs/[\w-]+\.md\b", text):
            if named.group() not in pages:
                yield f"{path}:{line_of(text, named.start())}: there is no {named.group()}"


def check_links(pages):
    """Links of Markdown pages to files of the tree, and to headings in them."""
    anchors = {page: {anchor_of(heading) for heading in headings(text)}
               for page, text in pages.items()}
    for path, text in pages.items():
        plain = without_code_blocks(text)
        for link in re.finditer(r"\]\(([^()\s]+)\)", plain):
            target, _, anchor = link.group(1).partition("#")
            if re.match(r"(https?|mailto):", target):
                continue
            file = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            where = f"{path}:{line_of(plain, link.start())}"
            if not os.path.exists(os.path.join(ROOT, file)):
                yield f"{where}: there is no {file}"
            elif anchor and anchor not in anchors.get(file, ()):
                yield f"{where}: {file} has no heading #{anchor}"


def check_sizes(paths):
    for path in paths:
        size = os.path.getsize(os.path.join(ROOT, path))
        if size > BYTES_MAX:
            yield f"{path}: {size} bytes, {BYTES_MAX} are the limit"


def check_executable(paths):
    for path in paths:
        full = os.path.join(ROOT, path)
        with open(full, "rb") as file:
            has_interpreter = file.read(2) == b"#!"
        if has_interpreter and not os.access(full, os.X_OK):
            yield f"{path}: starts with #! and is not executable"


def check_exports(sources):
    """PostgreSQL 15 does not export SQL functions itself where symbols are hidden."""
    for path, text in sources.items():
        for name in re.findall(r"PG_FUNCTION_INFO_V1\((\w+)\)", text):
            if not re.search(r"PGDLLEXPORT Datum " + name + r"\(PG_FUNCTION_ARGS\)", text):
                yield f"{path}: {name} is not declared PGDLLEXPORT"


def main():
    paths = listed_files()
    sources = {path: read(path) for path in paths
               if path.endswith((".h", ".cc", ".cpp", ".c"))}
    pages = {path: read(path) for path in paths if path.endswith(".md")}
    texts = {path: read(path) for path in paths if path.endswith((".h", ".cc", ".py", ".sh", ".sql"))
             and not path.startswith("expected/")}
    rules = {
        "layers": check_layers(sources),
        "plain data": check_plain_data(sources),
        "rooms": check_rooms(sources),
        "rooms' READMEs": check_room_readmes(sources),
        "PostgreSQL's headers": check_server_headers(sources),
        "libibverbs": check_verbs_header(sources),
        "choice of the fabric": check_fabric_choice(sources),
        "protocol names": check_protocol_names(sources),
        "primitive names": check_primitive_names(sources),
        "rules with their drivers": check_compiled_rules(sources),
        "namesakes compiled together": check_namesakes(sources, read("CMakeLists.txt"),
                                                       read("tests/CMakeLists.txt")),
        "file lengths": check_lengths(sources),
        "line lengths": check_columns(sources),
        "checks in 1,000 lines": check_density(sources),
        "words": check_words(texts),
        "words for persons": check_persons(texts, pages),
        "old names": check_old_names(texts, pages),
        "pragma once": check_headers(sources),
        "using namespace": check_using_namespace(sources),
        "cited sections": check_citations(texts, pages),
        "links of pages": check_links(pages),
        "file sizes": check_sizes(paths),
        "executable scripts": check_executable(paths),
        "exported functions": check_exports(sources),
    }
    failed = 0
    for rule, findings in rules.items():
        broken = list(findings)
        failed += bool(broken)
        print(f"{'not ok' if broken else 'ok'} - {rule}")
        for finding in broken:
            print(f"  {finding}")
    print(f"{len(rules) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
