#!/usr/bin/env python3
"""Settings: what they accept, and with which error they refuse."""

from harness import equal, fails_with, matches, run, true
from sandbox import Failure


def protocol_ignores_case_and_names_the_others(box):
    equal(box.psql("SET rdmacc.protocol = 'NoWait'; SHOW rdmacc.protocol"), "nowait", "protocol")
    said = fails_with(box, "SET rdmacc.protocol = 'nonsense'", "22023")
    matches("nowait, .*occ", said, "available protocols")


def protocol_default_is_shown(box):
    equal(box.psql("SHOW rdmacc.protocol"), "occ", "default protocol")


def stages_accept_names_numbers_and_lists(box):
    for text in ("one_sided", "rpc", "0", "511", "lock=rpc,log=one_sided", "auto"):
        equal(box.psql(f"SET rdmacc.stages = '{text}'; SHOW rdmacc.stages"), text, "stages")
    for text in ("512", "-1", "nonsense", "lock=maybe", "nonsense=rpc"):
        fails_with(box, f"SET rdmacc.stages = '{text}'", "22023")


def changing_the_protocol_in_a_transaction_that_used_the_engine(box):
    box.psql("CREATE TABLE within (id int PRIMARY KEY) USING rdmacc")
    fails_with(box, "SET rdmacc.protocol = 'nowait'; BEGIN; SELECT * FROM within;"
                    " SET rdmacc.protocol = 'occ'", "25001")
    # Before the first access, after the end, or to what it is already: allowed.
    box.psql("BEGIN; SET rdmacc.protocol = 'nowait'; SELECT * FROM within;"
             " SET rdmacc.protocol = 'nowait'; COMMIT; SET rdmacc.protocol = 'occ';"
             " SELECT * FROM within")
    box.psql("DROP TABLE within")


def lock_mode_is_sampled_like_the_protocol(box):
    equal(box.psql("SHOW rdmacc.lock_mode"), "exclusive", "default lock mode")
    fails_with(box, "SET rdmacc.lock_mode = 'nonsense'", "22023")
    box.psql("CREATE TABLE sampled (id int PRIMARY KEY) USING rdmacc")
    fails_with(box, "BEGIN; SELECT * FROM sampled; SET rdmacc.lock_mode = 'shared'", "25001")
    box.psql("BEGIN; SET rdmacc.lock_mode = 'Shared'; SELECT * FROM sampled;"
             " SET rdmacc.lock_mode = 'shared'; COMMIT; DROP TABLE sampled")


def a_preset_wins_over_what_is_said_in_a_more_general_place(box):
    shown = "SELECT current_setting('rdmacc.protocol'), current_setting('rdmacc.lock_mode')"
    box.psql("ALTER DATABASE postgres SET rdmacc.protocol = 'waitdie';"
             " ALTER DATABASE postgres SET rdmacc.lock_mode = 'shared'")
    equal(box.psql(shown), "waitdie|shared", "of the database")
    equal(box.psql(f"SET rdmacc.preset = 'motor'; {shown}"), "cicada|exclusive", "the preset")
    equal(box.psql(f"SET rdmacc.preset = 'motor'; SET rdmacc.protocol = 'nowait'; {shown}"),
          "nowait|exclusive", "the session's protocol")
    box.psql("ALTER DATABASE postgres SET rdmacc.preset = 'motor'")
    equal(box.psql(shown), "waitdie|shared", "beside the database's preset")
    box.psql("ALTER DATABASE postgres RESET rdmacc.protocol")
    equal(box.psql(shown), "cicada|shared", "the database's preset")
    equal(box.psql(f"SET rdmacc.preset = 'none'; {shown}"), "occ|shared", "no preset")
    box.psql("ALTER DATABASE postgres RESET ALL")


def server_settings_need_a_restart(box):
    for name in ("nodes", "node_threads", "node_memory", "replicas", "max_workers", "durability",
                 "huge_pages", "node_program", "fabric", "cluster", "cluster_name",
                 "cluster_secret_file", "verbs_device", "verbs_port", "verbs_gid_index"):
        equal(box.psql(f"SELECT context FROM pg_settings WHERE name = 'rdmacc.{name}'"),
              "postmaster", name)
    equal(box.psql("SHOW rdmacc.gate_timeout"), "10s", "gate_timeout")
    equal(box.psql("SHOW rdmacc.node_threads"), "1", "node_threads")
    equal(box.psql("SHOW rdmacc.node_memory"), "256MB", "node_memory")


def unknown_settings_are_refused(box):
    fails_with(box, "SET rdmacc.nonsense = 1", "42602")


def plain_roles_see_no_nodes(box):
    box.psql("CREATE ROLE plain; CREATE ROLE monitor IN ROLE pg_monitor")
    fails_with(box, "SET ROLE plain; SELECT * FROM rdmacc.stat_nodes", "42501")
    fails_with(box, "SET ROLE plain; SELECT rdmacc.nodes()", "42501")
    fails_with(box, "SET ROLE plain; SHOW rdmacc.node_program", "42501")
    fails_with(box, "SET ROLE plain; SHOW rdmacc.cluster_secret_file", "42501")
    fails_with(box, "SET ROLE plain; SET rdmacc.max_write_set = '1MB'", "55P02")
    equal(box.psql("SET ROLE monitor; SELECT count(*) FROM rdmacc.stat_nodes"), "2", "nodes")
    equal(box.psql("SET ROLE plain; SELECT rdmacc.version()"), "1.1", "version")


def install_script_leaves_nothing_open(box):
    equal(box.psql("SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace"
                   " WHERE nspname = 'rdmacc' AND prosecdef"), "0", "SECURITY DEFINER functions")
    equal(box.psql("SELECT string_agg(proname, ',' ORDER BY proname) FROM pg_proc p"
                   " JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'rdmacc'"
                   " AND has_function_privilege('plain', p.oid, 'EXECUTE')"),
          "noted_clock,noted_currval,noted_identity,noted_lastval,noted_nextval,noted_random,noted_uuid,"
          "relation_size,set_option,tableam_handler,version", "functions that every user may call")


def every_node_is_listed(box):
    rows = box.psql("SELECT node, state, region_bytes >= 256 * 1024 * 1024, restarts, pid > 0,"
                    " started <= now(), used_bytes <= backed_bytes, backed_bytes <= region_bytes"
                    " FROM rdmacc.stat_nodes ORDER BY node").split("\n")
    for number, row in enumerate(rows):
        equal(row, f"{number}|running|t|0|t|t|t|t", "node")


def supervisor_is_listed(box):
    equal(box.psql("SELECT query FROM pg_stat_activity WHERE backend_type = 'rdmacc supervisor'"),
          "2 of 2 nodes running", "pg_stat_activity")


def bad_configuration_ends_the_start(box):
    for name, value, words in (
            ("rdmacc.nodes", 0, "outside the valid range"),
            ("rdmacc.nodes", 65, "outside the valid range"),
            ("rdmacc.node_threads", 0, "outside the valid range"),
            ("rdmacc.node_threads", 65, "outside the valid range"),
            ("rdmacc.node_memory", "1MB", "outside the valid range"),
            ("rdmacc.durability", "tape", "Available values"),
            ("rdmacc.protocol", "nonsense", "Available values"),
            ("rdmacc.nonsense", 1, None),
            ("rdmacc.replicas", 2, "must be less than rdmacc.nodes")):
        box.stop()
        before = len(box.log_text())
        kept = dict(box.settings)
        box.settings[name] = value
        why_not = None
        try:
            box.start()
        except Failure as failure:
            why_not = str(failure)
        box.settings = kept
        if words is None:
            true(why_not is None, f"{name} is only warned of")
        else:
            true(why_not is not None, f"{name} = {value} must end the start")
            matches("no postmaster.pid", why_not, "the server has gone")
            matches(words, box.log_text()[before:], name)
    box.stop()
    box.start()


run(protocol_ignores_case_and_names_the_others, protocol_default_is_shown,
    stages_accept_names_numbers_and_lists,
    changing_the_protocol_in_a_transaction_that_used_the_engine,
    lock_mode_is_sampled_like_the_protocol,
    a_preset_wins_over_what_is_said_in_a_more_general_place, server_settings_need_a_restart,
    unknown_settings_are_refused, plain_roles_see_no_nodes, install_script_leaves_nothing_open,
    every_node_is_listed, supervisor_is_listed, bad_configuration_ends_the_start,
    settings={"rdmacc.nodes": 2, "rdmacc.node_memory": "256MB"})
