"""One end of SPU's bare link, as a program: libspu may end the process that it runs in.

The argument is a seat as JSON. Says `linked` when it is, and stays until it is killed.
"""

import json
import sys
import time

from opfl_chain.mpc.deadline import Deadline
from opfl_chain.mpc.link import create_link
from opfl_chain.mpc.run_log import run_log
from opfl_chain.mpc.seat import Seat

seat = Seat.from_json(json.loads(sys.argv[1]))
run_log()
link = create_link(seat, "bare", seat.addresses, Deadline(60))
print("linked", flush=True)
time.sleep(60)
