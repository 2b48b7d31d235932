"""Open vSwitch on a dummy datapath, for tests: no kernel module, no root, a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PREFIX = Path(os.environ.get("PLANNER_OVS", "/"))
"""Where Debian's packages openvswitch-switch and openvswitch-common are, installed or unpacked."""
PLACES = ("usr/bin", "usr/sbin", "usr/lib/openvswitch-switch")
BRIDGE = "br0"
INPUT = 100
NEWER = "OpenFlow13"
ONLY_NEWER = ("push_vlan",)  # actions that version 1.0 does not have


def find_program(name: str) -> str | None:
    """Return the path of a program of Open vSwitch; None where it is not there."""
    return shutil.which(name, path=os.pathsep.join(str(PREFIX / position) for position in PLACES))


IS_THERE = all(find_program(name) for name in ("ovs-vswitchd", "ovsdb-server", "ovs-vsctl", "ovs-ofctl"))


@dataclass(frozen=True)
class Switch:
    """A running switch with one bridge."""

    folder: Path

    def run(self, name: str, *arguments: str) -> str:
        """Run a program of Open vSwitch and return its output."""
        program = find_program(name)
        assert program is not None
        own_values = {
            "OVS_RUNDIR": str(self.folder),
            "OVS_LOGDIR": str(self.folder),
            "LD_LIBRARY_PATH": str(PREFIX / "usr/lib/x86_64-linux-gnu"),
        }
        result = subprocess.run(
            [program, *arguments],
            env=os.environ | own_values,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result.stdout

    def set_rules(self, text: str) -> None:
        """Replace all rules of the bridge."""
        path = self.folder / "rules.txt"
        path.write_text(text)
        self.run("ovs-ofctl", "del-flows", BRIDGE)
        version = ("-O", NEWER) if any(word in text for word in ONLY_NEWER) else ()
        self.run("ovs-ofctl", *version, "add-flows", BRIDGE, str(path))

    def trace(self, header: str) -> str:
        """Return the output of ofproto/trace for a packet."""
        return self.run("ovs-appctl", "ofproto/trace", BRIDGE, f"in_port={INPUT},{header}")


@contextmanager
def start_switch(folder: Path, ports: int) -> Iterator[Switch]:
    """Start a switch with a bridge of some output ports and one for input, and stop it at the end."""
    switch = Switch(folder)
    schema = PREFIX / "usr/share/openvswitch/vswitch.ovsschema"
    switch.run("ovsdb-tool", "create", "conf.db", str(schema))
    detached = ("--pidfile", "--detach", "--no-chdir", "--log-file")
    remote = f"unix:{folder}/db.sock"
    try:
        switch.run("ovsdb-server", "conf.db", f"--remote=p{remote}", *detached)
        switch.run("ovs-vsctl", "--no-wait", f"--db={remote}", "init")
        switch.run("ovs-vswitchd", remote, "--enable-dummy=override", "--disable-system", *detached)
        added = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=dummy", "fail-mode=secure"]
        added += [f"protocols=OpenFlow10,{NEWER}"]
        for port in (*range(1, ports + 1), INPUT):
            name = f"p{port}"
            added += ["--", "add-port", BRIDGE, name, "--", "set", "Interface", name, "type=dummy"]
            added += [f"ofport_request={port}"]
        switch.run("ovs-vsctl", f"--db={remote}", *added)
        yield switch
    finally:
        for path in folder.glob("ovs*.pid"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(path.read_text()), signal.SIGTERM)
