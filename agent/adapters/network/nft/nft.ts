/** The table of rules in the kernel, through nft(8). Its options and its JSON (libnftables-json(5)) appear here only. */
import type { RuleTable } from '../../../network/network-manager.ts'
import type { ExistingRules, ExistingSet } from '../../../network/rule-changes.ts'
import type { RuleFamily } from '../../../network/rule-family.ts'
import { tableName } from '../../../network/rule-set.ts'
import { runTool, runToolOrThrow } from '../run-tool.ts'

function listsOf({ ip }: RuleFamily): string {
  return ['tables', 'chains', 'sets', 'maps'].map((what) => `list ${what} ${ip}`).join('; ')
}

const enteredTables = { ip: enteredTable('ip'), ip6: enteredTable('ip6') }

/** `chains`: as `nft list chains` prints those of all tables. The kernel enters a chain of our table of this family. */
export function entersTable(family: 'ip' | 'ip6', chains: string): boolean {
  return enteredTables[family].test(chains)
}

/** Lines of a table begin with a tab. */
function enteredTable(family: string): RegExp {
  return new RegExp(`^table ${family} ${tableName} \\{\n(?:\t.*\n|\n)*?\t+type \\w+ hook `, 'm')
}

export type Listed = { readonly [kind: string]: unknown }

/** Neither function rejects. */
export type TableSigns = {
  /** The rules in the kernel have an effect that shows that they are there. False proves nothing. */
  readonly isAnswering?: () => Promise<boolean>
  /** Gets the chains of all tables that `isIntact` has listed; undefined: it has looked for a rule, and so should others. */
  readonly observe?: (chains: string | undefined) => Promise<void>
}

/** The table of our name of a family; other tables are not touched. Each call rejects with nft's first line of errors. */
export function nftTable(family: RuleFamily, nft = 'nft', { isAnswering, observe }: TableSigns = {}): RuleTable {
  const { ip } = family
  const tried = `Cannot change table ${ip} ${tableName}`
  return {
    family,
    async list() {
      // Lists all tables without their rules and elements (`-t`). The command is an argument: nft prints no JSON for
      // one from its input.
      const text = await runToolOrThrow(`Cannot list table ${ip} ${tableName}`, nft, ['-j', '-t', listsOf(family)])
      return existingIn(text, family)
    },
    async apply(transaction) {
      await runToolOrThrow(tried, nft, ['-f', '-'], transaction)
    },
    async isIntact(thorough) {
      if (!thorough && (await isAnswering?.())) return true
      // nft reads every element of the table before it lists a rule, and nothing but chains to list those.
      const list = thorough ? ['-j', 'list', 'chain', ip, tableName, 'forward'] : ['list', 'chains']
      const { code, stdout } = await runTool(nft, list)
      await observe?.(thorough || code !== 0 ? undefined : stdout)
      if (code !== 0) return false
      // As text: where another firewall hides the sign, objects of thousands of chains would be made twice a minute.
      return thorough ? listed(stdout).some((one) => one['rule'] !== undefined) : entersTable(ip, stdout)
    },
    async remove() {
      // `delete` of what is not there fails; `add` of what is there does nothing.
      await runToolOrThrow(tried, nft, ['-f', '-'], `add table ${ip} ${tableName}\ndelete table ${ip} ${tableName}\n`)
    },
  }
}

/** The content of our table, in output of `nft -j`: a document for each command. Undefined: there is no such table. */
export function existingIn(text: string, { ip }: RuleFamily): ExistingRules | undefined {
  const all = text.split('\n').flatMap(listed)
  const ours = (kind: string): readonly Listed[] =>
    all.flatMap((one) => {
      const found = one[kind]
      return isRecord(found) && found['family'] === ip && found['table'] === tableName ? [found] : []
    })
  const isThere = all.some(({ table }) => isRecord(table) && table['family'] === ip && table['name'] === tableName)
  if (!isThere) return undefined
  return {
    chains: ours('chain').map(({ name }) => String(name)),
    sets: [...ours('set').map((one) => setOf('set', one)), ...ours('map').map((one) => setOf('map', one))],
  }
}

function setOf(kind: 'set' | 'map', { name, type, map, timeout }: Listed): ExistingSet {
  const key = Array.isArray(type) ? type.join(' . ') : String(type)
  return {
    kind,
    name: String(name),
    type: kind === 'map' ? `${key} : ${String(map)}` : key,
    ...(typeof timeout === 'number' && { timeoutSeconds: timeout }),
  }
}

/** The objects in output of `nft -j`. */
export function listed(line: string): readonly Listed[] {
  if (line.trim() === '') return []
  const { nftables } = JSON.parse(line) as { readonly nftables?: unknown }
  return Array.isArray(nftables) ? nftables.filter(isRecord) : []
}

export function isRecord(value: unknown): value is Listed {
  return typeof value === 'object' && value !== null
}
