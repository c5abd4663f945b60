"""Audit one training step among three parties on this machine: an honest one, and three cheats.

python examples/audit_one_step.py
"""

import opfl_chain


def main() -> None:
    data = opfl_chain.load_dataset("synthetic")
    batch = data.train.take(slice(8))
    for attack in (None, "amplify:1.01", "reverse", "free-rider"):
        verdict = opfl_chain.audit_step(
            "lenet-61706",  # its default policy, and the boundary that comes with the package
            None,
            batch,
            attack=attack,
        )
        seconds = verdict.seconds["auditing"]
        print(f"{attack or 'honest':14} {verdict} ({seconds:.1f} s in MPC)")


if __name__ == "__main__":
    main()
