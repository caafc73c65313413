#!/usr/bin/env python3
"""Runs one command where libibverbs finds RDMA devices although this machine has none: in a
throw-away guest with Debian's own kernel, under qemu's software emulation, with two Soft-RoCE
devices (rxe0 at 10.77.0.1, rxe1 at 10.77.0.2) that a veth pair joins. The guest's root is this
machine's, read-only, under a layer of memory: it runs the programs that were built here, and what
it writes is gone with it.

    scripts/verbs_guest.py [--timeout S] [--cpus N] [--memory MB] [--] COMMAND [ARGUMENT...]

Output of the command is streamed. The exit code is the command's; 124: no end within the timeout;
125: the guest broke down; 77: there can be no guest here, for the printed reason."""

import argparse
import glob
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STORE = os.path.join(ROOT, "build/verbs-guest")
EXIT_SKIPPED, EXIT_TIMEOUT, EXIT_BROKEN = 77, 124, 125
PROGRAMS = ("qemu-system-x86_64", "busybox", "depmod", "modprobe", "xz", "cpio", "apt-get",
            "apt-cache", "dpkg-deb", "ip", "rdma", "tc")
# The kernel asks for its checksum by name, at run time, so that no dependency names it.
MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "veth",
           "crc32_generic", "sch_netem", "ib_uverbs", "rdma_rxe")
DOWNLOAD_S = 180

# First process of the guest, in the initial file system: loads modules, puts the machine's root
# under a layer of memory and goes on there.
FIRST = r"""#!/bin/busybox sh
PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in $(cat /modules/order); do
  insmod /modules/$module || echo "cannot load $module"
done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 machine /machine
mount -t tmpfs -o size=75% memory /memory
mkdir /memory/changes /memory/work
mount -t overlay -o lowerdir=/machine,upperdir=/memory/changes,workdir=/memory/work root /root
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts devpts /dev/pts
ln -s /proc/self/fd /dev/fd
mount -t tmpfs -o mode=755 run /root/run
for port in /sys/class/virtio-ports/*; do ln -s ${port##*/} /dev/port-$(cat $port/name); done
for place in proc sys dev; do mount --move /$place /root/$place; done
cat /second > /root/run/second
exec switch_root /root /bin/sh /run/second
"""

# Second stage, with the machine's own programs. An address of our own may come in at the other
# device (accept_local), and Soft-RoCE always names the device it sends by: what goes from one
# device to the other crosses the wire. Both must be in the first network namespace.
SECOND = r"""
ulimit -l unlimited
ulimit -c 0
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root RDMACC_GUEST=1
fail() { echo "guest: $*" > /dev/port-output; sync; busybox reboot -f; }
ip link set lo up
echo 1 > /proc/sys/net/ipv4/conf/all/accept_local
ip link add veth0 address 02:00:00:00:00:01 mtu 4200 type veth \
  peer name veth1 address 02:00:00:00:00:02 mtu 4200 || fail "no network"
for i in 0 1; do
  other=$((1 - i))
  ip address add 10.77.0.$((i + 1))/24 dev veth$i
  ip link set veth$i up
  ip neighbour replace 10.77.0.$((other + 1)) dev veth$i nud permanent \
    lladdr 02:00:00:00:00:0$((other + 1))
  rdma link add rxe$i type rxe netdev veth$i || fail "no RDMA device"
done
cd @FOLDER@ || fail "no such folder"
( exec @COMMAND@ ) < /dev/null > /dev/port-output 2>&1
echo $? > /dev/port-result
sync
busybox reboot -f
"""


class NoGuest(Exception):
    """There can be no guest on this machine."""


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=DOWNLOAD_S, **options).stdout


def kernel_package():
    found = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", "depends",
                                                          "linux-image-amd64"))
    if not found:
        raise NoGuest("apt knows no linux-image-amd64")
    return found.group(1)


def kernel_folder():
    """Where the kernel's package is unpacked; it is never installed."""
    ready = sorted(glob.glob(os.path.join(STORE, "linux-image-*", "unpacked")))
    if ready:
        return os.path.dirname(ready[-1])
    os.makedirs(STORE, exist_ok=True)
    package = kernel_package()
    print(f"fetching {package}", flush=True)
    with tempfile.TemporaryDirectory(dir=STORE) as folder:
        # apt's own user may not write here; it then says so and goes on as root.
        run("apt-get", "download", package, cwd=folder)
        files = glob.glob(os.path.join(folder, "*.deb"))
        if len(files) != 1:
            raise NoGuest(f"apt-get download {package} left no package")
        kernel = os.path.join(folder, "kernel")
        run("dpkg-deb", "-x", files[0], kernel)
        version = package.removeprefix("linux-image-")
        run("depmod", "-b", kernel, version)
        open(os.path.join(kernel, "unpacked"), "w", encoding="ascii").close()
        os.rename(kernel, os.path.join(STORE, package))
    return os.path.join(STORE, package)


def module_files(kernel, version):
    """Every module file that is needed, each behind those that it depends on."""
    files = []
    for module in MODULES:
        for line in run("modprobe", "-d", kernel, "-S", version, "--show-depends",
                        module).splitlines():
            words = line.split()
            if words[0] == "insmod" and words[1] not in files:
                files.append(words[1])
    return files


def initial_file_system(kernel, version):
    """A packed file system with the static busybox and the modules; built once for a kernel."""
    path = os.path.join(STORE, f"initial-{version}")
    if os.path.exists(path) and os.path.getmtime(path) > os.path.getmtime(__file__):
        return path
    busybox = shutil.which("busybox")
    if subprocess.run(["ldd", busybox], capture_output=True).returncode == 0:
        raise NoGuest("busybox is not the static one (package busybox-static)")
    with tempfile.TemporaryDirectory(dir=STORE) as folder:
        for name in ("bin", "modules", "dev", "proc", "sys", "machine", "memory", "root"):
            os.mkdir(os.path.join(folder, name))
        shutil.copy(busybox, os.path.join(folder, "bin/busybox"))
        for applet in ("sh", "mount", "insmod", "mkdir", "ln", "cat", "switch_root"):
            os.symlink("busybox", os.path.join(folder, "bin", applet))
        order = []
        for file in module_files(kernel, version):
            name = os.path.basename(file).removesuffix(".xz")
            order.append(name)
            with open(os.path.join(folder, "modules", name), "wb") as module:
                subprocess.run(["xz" if file.endswith(".xz") else "cat", *(["-dc"] if
                               file.endswith(".xz") else []), file], stdout=module, check=True)
        with open(os.path.join(folder, "modules/order"), "w", encoding="ascii") as listing:
            listing.write("\n".join(order))
        with open(os.path.join(folder, "init"), "w", encoding="ascii") as init:
            init.write(FIRST)
        os.chmod(os.path.join(folder, "init"), 0o755)
        names = subprocess.run(["find", "."], cwd=folder, check=True, stdout=subprocess.PIPE).stdout
        packed = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=folder, input=names,
                                check=True, stdout=subprocess.PIPE).stdout
        with open(path + ".part", "wb") as file:
            file.write(packed)
        os.rename(path + ".part", path)
    return path


def second_stage(command):
    words = " ".join(shlex.quote(word) for word in command)
    return SECOND.replace("@FOLDER@", shlex.quote(os.getcwd())).replace("@COMMAND@", words)


def with_job(packed, script, folder):
    """The initial file system, and the second stage behind it as one more archive: the kernel
    unpacks both."""
    os.makedirs(os.path.join(folder, "job"))
    with open(os.path.join(folder, "job/second"), "w", encoding="utf-8") as file:
        file.write(script)
    extra = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=b"second\n",
                           cwd=os.path.join(folder, "job"), check=True,
                           stdout=subprocess.PIPE).stdout
    path = os.path.join(folder, "initial")
    with open(path, "wb") as file, open(packed, "rb") as base:
        shutil.copyfileobj(base, file)
        file.write(b"\0" * (-file.tell() % 512))
        file.write(extra)
    return path


def qemu_command(image, initial, folder, flags):
    # Emulated always: where there is hardware virtualisation inside a virtual machine it has
    # proven slower, or not to work.
    return ["qemu-system-x86_64", "-machine", "pc,hpet=off,usb=off", "-accel", "tcg,thread=multi",
            "-cpu", "max,la57=off,pku=off,smap=off,smep=off,umip=off", "-smp", str(flags.cpus),
            "-m", str(flags.memory), "-nodefaults", "-no-user-config", "-display", "none",
            "-no-reboot", "-kernel", image, "-initrd", initial, "-append",
            "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable net.ifnames=0 "
            "random.trust_cpu=on apparmor=0 audit=0 nowatchdog",
            "-chardev", f"file,id=console,path={folder}/console", "-serial", "chardev:console",
            "-fsdev", "local,id=machine,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=machine,mount_tag=machine",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=output,path={folder}/output",
            "-device", "virtserialport,chardev=output,name=output",
            "-chardev", f"file,id=result,path={folder}/result",
            "-device", "virtserialport,chardev=result,name=result"]


def stream(listener, guest, deadline):
    """Copies what the command says until the guest ends; False if that takes too long."""
    connection = None
    while time.monotonic() < deadline:
        source = connection or listener
        source.settimeout(0.5)
        try:
            if connection is None:
                connection, _ = listener.accept()
                continue
            data = connection.recv(65536)
        except socket.timeout:
            if guest.poll() is not None:
                return True
            continue
        if not data:
            try:
                guest.wait(timeout=max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return False
            return True
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    return False


def tail_of(path, lines=40):
    try:
        with open(path, errors="replace", encoding="utf-8") as file:
            return "".join(file.readlines()[-lines:])
    except OSError:
        return ""


def run_guest(kernel, version, flags):
    packed = initial_file_system(kernel, version)
    image = os.path.join(kernel, "boot", f"vmlinuz-{version}")
    with tempfile.TemporaryDirectory(prefix="rdmacc-guest-") as folder:
        initial = with_job(packed, second_stage(flags.command), folder)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.join(folder, "output"))
            listener.listen(1)
            guest = subprocess.Popen(qemu_command(image, initial, folder, flags),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
            try:
                ended = stream(listener, guest, time.monotonic() + flags.timeout)
            finally:
                if guest.poll() is None:
                    guest.terminate()
                try:
                    complaint = guest.communicate(timeout=30)[1]
                except subprocess.TimeoutExpired:
                    guest.kill()
                    complaint = guest.communicate()[1]
        result = tail_of(os.path.join(folder, "result")).strip()
        if not ended:
            print(f"verbs_guest: no end within {flags.timeout} s", file=sys.stderr)
            return EXIT_TIMEOUT
        if not result.isdigit():
            print("verbs_guest: the guest broke down\n" + complaint.decode(errors="replace") +
                  tail_of(os.path.join(folder, "console")), file=sys.stderr)
            return EXIT_BROKEN
        return int(result)


def prepare():
    if os.uname().machine != "x86_64":
        raise NoGuest("the guest is made for x86-64")
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise NoGuest("not installed: " + ", ".join(missing))
    try:
        kernel = kernel_folder()
    except (subprocess.SubprocessError, OSError) as error:
        output = getattr(error, "output", None) or ""
        raise NoGuest(f"no kernel could be fetched: {error} {output}".strip()) from error
    return kernel, os.path.basename(kernel).removeprefix("linux-image-")


def main():
    parser = argparse.ArgumentParser(description="run a command in a guest with RDMA devices")
    parser.add_argument("--timeout", type=int, default=300, help="seconds (300)")
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--memory", type=int, default=2048, help="MB (2048)")
    parser.add_argument("command", nargs="+")
    flags = parser.parse_args()
    # A signal ends the guest, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    try:
        kernel, version = prepare()
    except NoGuest as reason:
        print(f"skipped: {reason}", flush=True)
        return EXIT_SKIPPED
    return run_guest(kernel, version, flags)


if __name__ == "__main__":
    sys.exit(main())
