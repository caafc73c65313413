"""Ends of servers and of their processes, as power switches and the kernel bring them about."""

import os
import signal
import subprocess
import time

import power
from harness import Unmet, eventually, node_pids, true, wait_until_up
from parallel import PROTOCOLS

SERVER = ("postgres", "rdmacc_node")
BEGINS_ANEW = "all server processes terminated; reinitializing"


def server_processes(box):
    """Of this sandbox: those that run its copies of the programs."""
    found = []
    for name in os.listdir("/proc"):
        try:
            program = os.readlink(f"/proc/{name}/exe") if name.isdigit() else ""
        except OSError:
            continue  # it has ended
        if os.path.dirname(program) == box.bin and os.path.basename(program) in SERVER:
            found.append(int(name))
    return found


def processes_called(box, name):
    """Of PostgreSQL's, by what they show in a list of processes."""
    found = []
    for pid in server_processes(box):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                shown = file.read()
        except OSError:
            continue  # it has ended
        if name in shown:
            found.append(pid)
    return found


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended by itself


def kill_everything(box):
    """All processes of the server and all nodes at one moment: they are stopped before any is
    killed, so that none of them sees another end. With the power layer, what they had not synced
    goes with them."""
    seen = set()
    for _ in range(100):
        pids = server_processes(box)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                send(pid, number)
        seen.update(pids)
        # A postmaster whose parent has not yet asked for its end would count as running.
        if not any(os.path.exists(f"/proc/{pid}") for pid in seen):
            return power.cut(box)
        time.sleep(0.05)
    raise Unmet(f"processes that do not end: {seen}")


def worker_pid(box, name):
    pid = box.psql(f"SELECT pid FROM pg_stat_activity WHERE backend_type = '{name}'")
    true(pid != "", f"there is a {name}")
    return int(pid)


def wait_for_rows(box):
    """Until sessions get at rows; they wait themselves, for some seconds."""
    eventually(lambda: box.psql("SELECT 1") == "1", "the server is up again")
    wait_until_up(box)


def fast_stop(box):
    box.stop("fast")
    box.start()


def immediate_stop(box):
    box.stop("immediate")
    box.start()


def killed_whole(box):
    kill_everything(box)
    box.start()


def killed_after_checkpoint(box):
    box.psql("CHECKPOINT")
    killed_whole(box)


def killed_by_pid(box, pid):
    """One process of PostgreSQL's: all of them end, and begin anew."""
    restarts = box.log_text().count(BEGINS_ANEW)
    send(pid, signal.SIGKILL)
    eventually(lambda: box.log_text().count(BEGINS_ANEW) > restarts, "the server begins anew")


def killed_idle_session(box):
    """One in the middle of a transaction."""
    killed_by_pid(box, int(box.psql("SELECT min(pid) FROM pg_stat_activity"
                                    " WHERE state = 'idle in transaction'")))


def killed_supervisor(box):
    killed_by_pid(box, worker_pid(box, "rdmacc supervisor"))


def killed_checkpointer(box):
    killed_by_pid(box, worker_pid(box, "rdmacc checkpointer"))


def ended_checkpointer(box):
    """Which is started again, while the others stay."""
    pid = worker_pid(box, "rdmacc checkpointer")
    send(pid, signal.SIGTERM)
    eventually(lambda: box.psql("SELECT count(*) FROM pg_stat_activity WHERE backend_type ="
                                f" 'rdmacc checkpointer' AND pid <> {pid}") == "1",
               "there is another checkpointer")


def killed_node(box, node=1):
    pid = node_pids(box)[node]
    send(pid, signal.SIGKILL)
    running = f"SELECT pid FROM rdmacc.stat_nodes WHERE node = {node} AND state = 'running'"
    eventually(lambda: box.psql(running) not in ("", str(pid)), "the node is back")


def killed_parallel_worker(box):
    """One that reads for another session, under one of PROTOCOLS. They come and go: one that a
    signal finds at its end is no kill, and another one is looked for."""
    restarts = box.log_text().count(BEGINS_ANEW)

    def killed():
        pids = processes_called(box, "parallel worker")
        for pid in pids:
            send(pid, signal.SIGKILL)
        time.sleep(0.2 if pids else 0)  # the server says so before it ends the others
        log = box.log_text()
        return any(f"(PID {pid}) was terminated by signal 9" in log for pid in pids)

    eventually(killed, "a parallel worker is killed")
    eventually(lambda: box.log_text().count(BEGINS_ANEW) > restarts, "the server begins anew")


def protocols_for(kill, offered):
    """Of those that are offered, where there is what `kill` ends."""
    return [name for name in offered if kill is not killed_parallel_worker or name in PROTOCOLS]


def killed_while_recovering(box):
    """As soon as there are nodes for rows to be loaded into; and again, a little later."""
    kill_everything(box)
    for delay_s in (0, 0.05):
        ready = box.log_text().count(") is ready")
        box.run("pg_ctl", "-D", box.data, "-l", box.log, "-W", "-o", f"-p {box.port}", "start",
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: box.log_text().count(") is ready") > ready, "nodes are there")
        time.sleep(delay_s)
        kill_everything(box)
    box.start()


def kills(randomness):
    """One of each kind, for storms under Load."""
    def killed_client(box):
        pids = box.psql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                        " AND pid <> pg_backend_pid() AND query LIKE '%accounts%'").split("\n")
        killed_by_pid(box, int(randomness.choice(pids)))

    def killed_a_node(box):
        killed_node(box, randomness.choice((0, 1)))

    return [killed_whole, immediate_stop, killed_client, killed_parallel_worker, killed_a_node,
            killed_checkpointer, killed_supervisor, killed_while_recovering]


def workers_killed_while_recovering(box):
    """The crash restart begins while rows are loaded."""
    killed_whole(box)
    for _ in range(3):
        for pid in processes_called(box, "rdmacc checkpointer"):
            send(pid, signal.SIGKILL)
        time.sleep(0.15)
