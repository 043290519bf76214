/** IPv6 of pods, through nft(8) and ip(8). */
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { mutex } from '../../../../daemon/mutex.ts'
import type { RuleTable } from '../../../network/network-manager.ts'
import { guardTable, type IPv6Guard } from '../../../network/peers/ipv6-guard.ts'
import { ipv6Rules } from '../../../network/rule-family.ts'
import { tableName } from '../../../network/rule-set.ts'
import { runTool, runToolOrThrow } from '../run-tool.ts'
import { entersTable } from './nft.ts'
import { answersCanary } from './rule-canary.ts'

export type GuardTools = { readonly ip: string; readonly nft: string }

const usualTools: GuardTools = { ip: 'ip', nft: 'nft' }
const tried = 'Cannot keep IPv6 away from pods'

export type NftIPv6Guard = IPv6Guard & {
  /** The table is in the kernel, or the kernel has no IPv6. */
  isClosed(): Promise<boolean>
  /**
   * `rules`: of the same name and family. They and the guard replace each other in one transaction, so that no packet passes while
   * there are neither.
   */
  inTurn(rules: RuleTable): RuleTable
}

/** `root`: where the kernel's files are found. `isOpen`: pods have IPv6 addresses, and rules of their own in its place. */
export function nftIPv6Guard(
  root: string,
  { ip, nft }: GuardTools = usualTools,
  isOpen: () => boolean = () => false,
): NftIPv6Guard {
  const bridges = new Set<string>()
  const oneAtATime = mutex()
  /** As nft prints the table that was put in place; undefined: the kernel may have another one. */
  let applied: string | undefined
  let wasOpen = false
  let isFirst = true

  const hasIPv6 = async () => {
    try {
      await access(join(root, 'proc/net/if_inet6'))
      return true
    } catch {
      return false
    }
  }
  const printed = async () => {
    const { code, stdout } = await runTool(nft, ['--stateless', 'list', 'table', 'ip6', tableName])
    return code === 0 ? stdout : undefined
  }

  /** A bridge that was made again has the setting of a new one. Of a bridge that is gone, true. */
  const passesRules = async (bridge: string) => {
    const file = join(root, 'sys/class/net', bridge, 'bridge/nf_call_ip6tables')
    return (await readFile(file, 'utf8').catch(() => '1')).trim() !== '0'
  }

  /** With those that `left` names and that are still there. Returns a line about what failed. */
  const setBridges = async (left: ReturnType<typeof closedBridges>): Promise<string | undefined> => {
    const all = [...new Set([...bridges, ...left])]
    // Packets between two ports of a bridge pass IPv6 rules only where the bridge is set so.
    const lines = all.map((bridge) => `link set dev ${bridge} type bridge nf_call_ip6tables 1\n`)
    const { stderr } = await runTool(ip, ['-force', '-batch', '-'], lines.join(''))
    const gone = new Set([...stderr.matchAll(/Cannot find device "(.*)"/g)].map(([, name]) => name))
    for (const bridge of left) if (!gone.has(bridge)) bridges.add(bridge)
    return stderr.split('\n').find((line) => line !== '' && !ofNoInterest.test(line))
  }

  const apply = async () => {
    applied = undefined
    wasOpen = isOpen()
    if (!(await hasIPv6())) return
    const present = isFirst ? ((await printed()) ?? '') : ''
    // Rules of a fleet that has given up IPv6 stay until its bridges are known.
    if (!wasOpen && bridges.size === 0 && hasRules(present)) return
    // Pods run on while an agent is replaced, and the engine may not answer yet: the bridges that the last one closed stay closed.
    const failure = await setBridges(closedBridges(present))
    if (!wasOpen) await runToolOrThrow(tried, nft, ['-f', '-'], guardTable([...bridges].sort()))
    isFirst = false
    if (failure !== undefined) throw new Error(`${tried}: ${failure.slice(0, 200)}`)
    applied = wasOpen ? '' : await printed()
  }

  const isApplied = () => applied !== undefined && wasOpen === isOpen()
  const areSet = async () => (await Promise.all([...bridges].map(passesRules))).every(Boolean)

  return {
    close: (bridge) =>
      oneAtATime(async () => {
        if (bridges.has(bridge) && isApplied() && (await passesRules(bridge))) return
        bridges.add(bridge)
        await apply()
      }),
    verify: () =>
      oneAtATime(async () => {
        if (!isApplied() || !(await areSet())) await apply()
      }),
    observe: (chains) =>
      oneAtATime(async () => {
        if (wasOpen || !isApplied() || (chains !== undefined && entersTable('ip6', chains))) return
        if (applied !== (await printed())) await apply()
      }),
    // A guard that is to be put in place is the matter of `verify`.
    isAnswering: async () => wasOpen || !isApplied() || answersCanary(ipv6Rules),
    remove: () =>
      oneAtATime(async () => {
        bridges.clear()
        applied = undefined
        if (!(await hasIPv6())) return
        const lines = [`add table ip6 ${tableName}`, `delete table ip6 ${tableName}`, '']
        await runToolOrThrow('Cannot remove table ip6 bramble', nft, ['-f', '-'], lines.join('\n'))
      }),
    inTurn: (rules) => ({
      ...rules,
      apply: (transaction) => oneAtATime(() => rules.apply(transaction)),
      remove: () => oneAtATime(() => (bridges.size === 0 ? rules.remove() : apply())),
    }),
    isClosed: async () => !(await hasIPv6()) || (await printed()) !== undefined,
  }
}

/** A table as nft prints it has more than the guard. */
function hasRules(table: string): boolean {
  return table.includes('chain peers-forward ')
}

/** In a table as nft prints it. */
function closedBridges(table: string): readonly string[] {
  return [...new Set([...table.matchAll(/[io]ifname "([\w.-]+)" drop/g)].map(([, name = '']) => name))]
}

/** A bridge that is gone has no packets; the second line names the command that failed. */
const ofNoInterest = /Cannot find device|^Command failed/
