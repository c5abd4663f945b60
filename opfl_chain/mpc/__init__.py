"""Three members compute on secret shares: programs, sessions to run them in, and Algorithm 1.

- `program`, `compiler`, `executable_cache`: a JAX function becomes code, compared by its hash
- `session`: what a member can do with its peers; `memory_committee` has three members in threads,
  for tests, `party` one in a process of its own, `local_committee` three of those on one machine
- `aby3`: between ring components and SPU's shares, exactly
- `errors`: all that can go wrong, by name

A party's process imports neither jax nor pydantic nor `spu`, only SPU's native library.
"""
