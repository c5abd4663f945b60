// The chain that `opfl devnet --chain hardhat` starts: the same rules, accounts and chain id as our
// Anvil, handed over in the environment by opfl_chain/chain/devnet.py, which also reads the port.
const { OPFL_MNEMONIC, OPFL_ACCOUNTS, OPFL_BALANCE_WEI, OPFL_CHAIN_ID, OPFL_BLOCK_TIME_MS } =
  process.env;

export default {
  networks: {
    node: {
      type: "edr-simulated",
      chainType: "l1",
      chainId: Number(OPFL_CHAIN_ID),
      hardfork: "prague",
      accounts: {
        mnemonic: OPFL_MNEMONIC,
        count: Number(OPFL_ACCOUNTS),
        accountsBalance: OPFL_BALANCE_WEI,
      },
      mining: { auto: true, interval: Number(OPFL_BLOCK_TIME_MS) },
      allowBlocksWithSameTimestamp: true, // there may be several blocks in a second
    },
  },
  paths: {
    artifacts: "../../.build/hardhat/artifacts",
    cache: "../../.build/hardhat/cache",
  },
};
