/** IPv6 of pods, through nft(8) and ip(8). */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { mutex } from '../../../daemon/mutex.ts'
import { guardTable, type IPv6Guard } from '../../network/peers/ipv6-guard.ts'
import { tableName } from '../../network/rule-set.ts'
import { runTool, runToolOrThrow } from './run-tool.ts'

export type GuardTools = { readonly ip: string; readonly nft: string }

const usualTools: GuardTools = { ip: 'ip', nft: 'nft' }
const tried = 'Cannot keep IPv6 away from pods'

/** `root`: where the kernel's files are found. */
export function nftIPv6Guard(
  root: string,
  { ip, nft }: GuardTools = usualTools,
): IPv6Guard & {
  /** The table is in the kernel, or the kernel has no IPv6. */
  isClosed(): Promise<boolean>
} {
  const bridges = new Set<string>()
  const oneAtATime = mutex()
  /** As nft prints the table that was put in place; undefined: the kernel may have another one. */
  let applied: string | undefined

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

  const apply = async () => {
    applied = undefined
    if (!(await hasIPv6())) return
    // Packets between two ports of a bridge pass rules of IPv6 only where the bridge is set so.
    const lines = [...bridges].map((bridge) => `link set dev ${bridge} type bridge nf_call_ip6tables 1\n`)
    const { stderr } = await runTool(ip, ['-force', '-batch', '-'], lines.join(''))
    await runToolOrThrow(tried, nft, ['-f', '-'], guardTable([...bridges].sort()))
    const failure = stderr.split('\n').find((line) => line !== '' && !ofNoInterest.test(line))
    if (failure !== undefined) throw new Error(`${tried}: ${failure.slice(0, 200)}`)
    applied = await printed()
  }

  return {
    close: (bridge) =>
      oneAtATime(async () => {
        if (bridges.has(bridge) && applied !== undefined) return
        bridges.add(bridge)
        await apply()
      }),
    verify: () =>
      oneAtATime(async () => {
        if (applied === undefined || applied !== (await printed())) await apply()
      }),
    remove: () =>
      oneAtATime(async () => {
        bridges.clear()
        applied = undefined
        if (!(await hasIPv6())) return
        const lines = [`add table ip6 ${tableName}`, `delete table ip6 ${tableName}`, '']
        await runToolOrThrow('Cannot remove table ip6 bramble', nft, ['-f', '-'], lines.join('\n'))
      }),
    isClosed: async () => !(await hasIPv6()) || (await printed()) !== undefined,
  }
}

/** A bridge that is gone has no packets; the second line names the command that failed. */
const ofNoInterest = /Cannot find device|^Command failed/
