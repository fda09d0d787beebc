"""pyeryx, measured in a process that waits for orders: bench/python_peer.py starts it."""

import importlib
import json
import sys
from time import perf_counter
from typing import Any

sys.path.insert(0, sys.argv[1])
eryx: Any = importlib.import_module("eryx")


def fresh() -> None:
    if bytes(eryx.Sandbox().execute("print(1+1)").stdout) != b"2\n":
        raise SystemExit("the peer gave a wrong answer")


fresh()
print("{}", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    began = perf_counter()
    for _ in range(order["times"]):
        fresh()
    print(json.dumps({"seconds": (perf_counter() - began) / order["times"]}), flush=True)
