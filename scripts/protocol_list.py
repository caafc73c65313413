"""The protocols by name, in the order in which they are told of: as engine/txn/rule/protocol_list.h
registers them."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = os.path.join(ROOT, "engine", "txn", "rule", "protocol_list.h")

with open(LIST, encoding="utf-8") as _file:
    PROTOCOLS = tuple(re.findall(r'^\s*each\(\w+, "(\w+)", \d+\)', _file.read(), re.M))
# Those that do not execute their transactions in one order for the cluster.
WITHOUT_ORDER = tuple(name for name in PROTOCOLS if name != "calvin")
