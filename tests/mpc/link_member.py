"""One end of SPU's bare link, as a program: libspu may end the process that it runs in.

Arguments: a seat as JSON, and seconds to connect. Says `linked`, and ends when its input does.
"""

import json
import os
import sys

from opfl_chain.mpc.deadline import Deadline
from opfl_chain.mpc.errors import LinkFailed
from opfl_chain.mpc.link import create_link
from opfl_chain.mpc.run_log import run_log
from opfl_chain.mpc.seat import Seat

seat = Seat.from_json(json.loads(sys.argv[1]))
run_log()
try:
    link = create_link(seat, "bare", seat.addresses, Deadline(float(sys.argv[2])))
    print("linked", flush=True)
    sys.stdin.read()
except LinkFailed as error:
    print(f"failed: {error}", flush=True)
os._exit(0)
