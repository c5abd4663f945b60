"""Calibrates a boundary and runs a job, both with plug-ins only; prints what came out as JSON."""

import json
import sys

import opfl_chain


def main(folder: str) -> None:
    data = opfl_chain.load_dataset("mirrored")
    policy = opfl_chain.default_policy("perceptron", rule="linf", batch_size=4, audit_rate=1.0)
    calibration = opfl_chain.calibrate(policy, data, steps=8)
    plan = opfl_chain.JobPlan.of(
        policy,
        calibration.boundary,
        clients=(None, None, "sparse:0.1"),
        rounds=1,
        dataset="mirrored",
        score=False,
    )
    result = opfl_chain.run_job(plan, folder=folder)
    found = {
        "plugins": policy.plugins,
        "rule": calibration.boundary.rule,
        "dataset": data.name,
        "verdicts": {name: result.verdicts(name) for name in ("client-0", "client-1", "client-2")},
        "charges": {name: outcome for (_, name), outcome in result.charges.items()},
        "lost_wei": result.lost_wei,
        "holds": result.report.holds,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
