"""A commented file for `opfl job create`, as `--example` prints it."""

JOB = """\
# opfl job create FILE.toml. Paths are relative to this file. All of it is fixed for good.
rounds = 100
members = [                        # accounts of the committee, in order of rank
    "0x0000000000000000000000000000000000000001",
    "0x0000000000000000000000000000000000000002",
    "0x0000000000000000000000000000000000000003",
]
relayer = "0x0000000000000000000000000000000000000004"   # the server's account; left out, nobody
treasury = "0x0000000000000000000000000000000000000005"  # gets its part of what is slashed
client_deposit = "0.5"             # ether; `opfl stake` says how much deters
member_stake = "1"
unbonding_delay = 7200             # blocks; longer than all phases of a round together

[chain]
rpc_url = "https://rpc.example"    # any EVM chain with Prague
deployment = "deployment.json"     # what `opfl deploy` wrote
confirmations = 2

[account]
keystore = "creator.json"          # pays for the transaction, and has no power afterwards
# password_file = "password"       # else the password is in OPFL_PASSWORD

[training]
# policy = "run/policy.json"       # both written by `opfl calibrate`; or, without them:
# boundary = "run/boundary.json"
model = "lenet-61706"              # a boundary for it comes with the package
batch_size = 8
audit_rate = 0.1                   # probability that a contribution is replayed
scheme = "shares"                  # or "mpc", which commits as the paper does
seed = 0
optimizer = { name = "adamw", learning_rate = 0.006 }

[phases]                           # in blocks; here for one block every 12 seconds
enrol = 7200                       # a day until the first round
commit = 50                        # 10 minutes to train and commit
beacon = 25                        # 5 minutes; members need seconds
deliver = 50                       # 10 minutes to deliver shares
attest = 100                       # 20 minutes; the last quarter is for members without peers
finalise = 50
request = 50
veto = 300                         # an hour for the second replay and for appeals

[client_penalties]                 # parts of the deposit
commitment_mismatch = 0.5
not_delivered = 0.1
input_not_committed = 1.0
replay_outside = 1.0

[member_penalties]                 # parts of the stake
beacon_withheld = 0.25
verdict_dissent = 0.2
verdict_silence = 0.1

[split]                            # of what is slashed, in basis points, 10,000 together
burn = 5000
treasury = 2000
committee = 3000
"""
