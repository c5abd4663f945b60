"""Store a calibration as a reference in the package: `keep_reference.py CALIBRATION_FOLDER`."""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "opfl_chain" / "lab" / "calibration" / "reference"


def main() -> None:
    calibrated = Path(sys.argv[1])
    policy = json.loads((calibrated / "policy.json").read_bytes())
    boundary = json.loads((calibrated / "boundary.json").read_bytes())
    name = f"{policy['model']['name']}-{boundary['rule']}-batch{policy['data']['batch_size']}"
    target = FOLDER / f"{name}.json"
    document = {"policy": policy, "boundary": boundary}
    target.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    print(target)


if __name__ == "__main__":
    main()
