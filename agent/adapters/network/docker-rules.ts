/** Our rule among those of Docker, which accepts packets with our mark, through iptables(8) and ip6tables(8). */
import { forwardMark } from '../../network/peers/peer-rules.ts'
import type { HostNetwork } from '../../network/peers/route-sync.ts'
import { runTool } from './run-tool.ts'

export type DockerRules = Pick<HostNetwork, 'acceptMarked' | 'refuseMarked'> & {
  /** The rule among Docker's own is there. */
  isAccepting(): Promise<boolean>
  /** Whether the same is true for IPv6, or Docker has no IPv6 rules. */
  acceptsIPv6(): Promise<boolean>
}

const markRule = ['DOCKER-USER', '--match', 'mark', '--mark', `${forwardMark}/${forwardMark}`, '--jump', 'ACCEPT']

/** `--wait`: another program may hold the lock of iptables, for seconds while it starts. */
export function dockerRules(tools: { readonly iptables: string; readonly ip6tables: string }): DockerRules {
  const docker = (...args: readonly string[]) => runTool(tools.iptables, ['--wait', '5', ...args])
  const isAccepting = async () => (await docker('--check', ...markRule)).code === 0
  const ofIPv6 = ipv6Rule(tools.ip6tables)
  return {
    isAccepting,
    acceptsIPv6: async () => !(await ofIPv6.isMissing()),

    async acceptMarked(withIPv6) {
      await (withIPv6 ? ofIPv6.accept() : ofIPv6.refuse(false))
      if (await isAccepting()) return
      const { code, stderr } = await docker('--insert', ...markRule)
      if (code === 0) return
      const remedy = 'Docker makes the chain DOCKER-USER when it starts, unless it runs with "iptables": false'
      throw new Error(`Cannot add a rule to DOCKER-USER: ${stderr.trim().slice(0, 200)} (${remedy})`)
    },

    async refuseMarked() {
      await ofIPv6.refuse(true)
      if (await isAccepting()) await docker('--delete', ...markRule)
    },
  }
}

function ipv6Rule(ip6tables: string) {
  /** undefined: the machine has no ip6tables, or no IPv6. */
  const docker = (...args: readonly string[]) => runTool(ip6tables, ['--wait', '5', ...args]).catch(() => undefined)
  const isThere = async () => (await docker('--check', ...markRule))?.code === 0
  /** Without a chain of Docker nothing is: it has no rules that drop IPv6 packets, either. */
  const isMissing = async () => (await docker('--list-rules', 'DOCKER-USER'))?.code === 0 && !(await isThere())
  /** This process has looked, and put none there since. */
  let isGone = false
  return {
    isMissing,
    async accept() {
      isGone = false
      if (!(await isMissing())) return
      const inserted = await docker('--insert', ...markRule)
      if (inserted?.code === 0) return
      throw new Error(`Cannot add an IPv6 rule to DOCKER-USER: ${inserted?.stderr.trim().slice(0, 200)}`)
    },
    /** `surely`: also where this process has put none there. */
    async refuse(surely: boolean) {
      if ((surely || !isGone) && (await isThere())) await docker('--delete', ...markRule)
      isGone = true
    },
  }
}

/** Whether Docker's chain for rules of others is there; undefined: this user may not see it, or iptables is missing. */
export async function hasDockerRules(iptables = 'iptables'): Promise<boolean | undefined> {
  try {
    const { code, stderr } = await runTool(iptables, ['--wait', '2', '--list-rules', 'DOCKER-USER'])
    return /permission denied/i.test(stderr) ? undefined : code === 0
  } catch {
    return undefined
  }
}
