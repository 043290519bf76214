/** The rules of iptables(8) as they are in the kernel: those it has in nftables, and those of the older tables. */
import { readFile } from 'node:fs/promises'
import { runTool } from './run-tool.ts'

export type FirewallRules = { readonly nat: readonly string[]; readonly filter: readonly string[] }

type FirewallTools = {
  readonly nft: string
  readonly legacy: string
  /** Where neither is installed by its own name. */
  readonly usual: string
  /** The tables of `legacy` that the kernel has. */
  readonly legacyTables: () => Promise<readonly string[]>
}

const system: FirewallTools = {
  nft: 'iptables-nft',
  legacy: 'iptables-legacy',
  usual: 'iptables',
  legacyTables: async () => (await readFile('/proc/net/ip_tables_names', 'utf8').catch(() => '')).split('\n'),
}

/** Undefined: this user may not see them, or iptables is not installed. */
export async function readFirewall(tools: FirewallTools = system): Promise<FirewallRules | undefined> {
  const loaded = await tools.legacyTables()
  const read = async (table: string): Promise<readonly string[] | undefined> => {
    const inNft = (await rulesOf(tools.nft, table)) ?? (await rulesOf(tools.usual, table))
    // Reading a table that the kernel does not have would load its module.
    const older = loaded.includes(table) ? await rulesOf(tools.legacy, table) : []
    return inNft === undefined && (older ?? []).length === 0 ? undefined : [...(inNft ?? []), ...(older ?? [])]
  }
  const [nat, filter] = await Promise.all([read('nat'), read('filter')])
  return nat && filter && { nat, filter }
}

async function rulesOf(program: string, table: string): Promise<readonly string[] | undefined> {
  try {
    const { code, stdout } = await runTool(program, ['--wait', '2', '--table', table, '--list-rules'])
    return code === 0 ? stdout.trim().split('\n') : undefined
  } catch {
    return undefined
  }
}
