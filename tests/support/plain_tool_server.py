"""An MCP server over stdin and stdout without the SDK, which takes a second to load. Its tools do wrong. Runs by its path."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any


def stall() -> str:
    """Never answer, and leave the ids of two processes: this one, and one that it started."""
    child = subprocess.Popen(["sleep", "600"])
    Path(sys.argv[1]).write_text(f"{os.getpid()} {child.pid}")
    threading.Event().wait()
    return ""


def leave() -> str:
    """Answer, and leave the id of a process in a session of its own whose parent is gone."""
    command = ["setsid", "sh", "-c", "sleep 600 >/dev/null & echo $!"]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    Path(sys.argv[1]).write_text(child.stdout)
    return "Otters float."


def leave_and_stall() -> str:
    """Leave such a process, and never answer."""
    leave()
    threading.Event().wait()
    return ""


def die() -> str:
    """End before the answer."""
    os._exit(1)


def flood() -> str:
    """Answer with more than is read."""
    return "otter " * 1_000_000


def talk() -> str:
    """Answer with more than is kept."""
    return "otter " * 10_000


def keep_silent() -> str:
    """Answer with nothing."""
    return " \n"


def show_environment() -> str:
    """Answer with the variables and the folder of this process."""
    return json.dumps({"variables": sorted(os.environ), "folder": str(Path.cwd())})


def print_noise() -> str:
    """Print what is no message, and answer."""
    sys.stdout.write("ready\n")
    return "Otters float."


TOOLS = {
    each.__name__: each
    for each in (stall, leave, leave_and_stall, die, flood, talk, keep_silent, show_environment, print_noise)
}


def _answer(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": parameters["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "otters", "version": "1"},
            }
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
        case _:
            return {"content": [{"type": "text", "text": TOOLS[parameters["name"]]()}]}


def main() -> None:
    """Serve until stdin ends, as a server does that knows an earlier version of the protocol than the SDK."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        said = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] == "server/discover":
            said["error"] = {"code": -32601, "message": "Method not found"}
        else:
            said["result"] = _answer(asked["method"], asked.get("params", {}))
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
