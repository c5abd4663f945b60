"""Commented settings files, as `--example` prints them."""

_SERVER = 'server = "https://server.example:9000"\n'

_COMMON = """\
state = "state/{name}"             # a folder of its own; keep it as long as the job runs
listen = "{host}:{port}"{pad}# where this daemon answers, /health included
server = "https://server.example:9000"

[chain]
rpc_url = "https://rpc.example"    # any EVM chain with Prague
# ws_url = "wss://rpc.example"     # new heads are announced there; without it, polling
deployment = "deployment.json"     # what `opfl deploy` wrote
job = 1
confirmations = 2                  # blocks on top of one before it is acted on
poll_seconds = 4.0                 # how often the chain is asked for a new block

[account]
keystore = "{name}.json"           # made by `opfl keys ethereum`
# password_file = "password"       # else the password is in OPFL_PASSWORD

[tls]                              # made by `opfl certs`; may be left out on one machine
authority = "certs/authority.pem"
"""

_CERTIFICATE = """\
certificate = "certs/{certificate}.pem"
private_key = "certs/{certificate}.key"
"""

CLIENT = (
    """\
# opfl client FILE.toml. Paths are relative to this file.
commit = "direct"                  # or "relayed": in the server's batch, at a fraction of the gas
threads = 1                        # of torch
"""
    + _COMMON.format(name="client-0", host="127.0.0.1", port=9100, pad=" " * 9)
    + """
[data]
dataset = "mnist"                  # mnist, fashion-mnist or synthetic
# data_dir = "data"                # your own copy
split = "iid"                      # or "dirichlet", with alpha
part = 0                           # this client's part of the data set ...
parts = 5                          # ... of so many
"""
)

COMMITTEE = (
    """\
# opfl committee FILE.toml. Paths are relative to this file.
bls_keystore = "member-0-bls.json" # made by `opfl keys bls`, with the same password
announce = "https://member-0.example:9200"  # goes on chain: where clients deliver
mpc_addresses = ["member-0.example:9300", "member-1.example:9300", "member-2.example:9300"]
# mpc_listen_host = "0.0.0.0"      # if it is not the host of our own address
# mpc_link_ports = [9301, 9399]    # a range for SPU's links, for firewalls; else any port
# mpc_join_seconds = 5.0           # how long to wait for a peer, before trying again
"""
    + _COMMON.format(name="member-0", host="0.0.0.0", port=9200, pad=" " * 11)
    + _CERTIFICATE.format(certificate="member-0")
)

SERVER = (
    """\
# opfl server FILE.toml. Paths are relative to this file.
# test_dataset = "mnist"           # measure the accuracy of every model
"""
    + _COMMON.format(name="server", host="0.0.0.0", port=9000, pad=" " * 11).replace(_SERVER, "")
    + _CERTIFICATE.format(certificate="server")
)
