/** Whether this agent can change the rules and routes of the kernel: the programs that it starts, its rights, and the kernel's part of nftables. */
import type { ToolProblem } from '../../network/gate/network-obstacle.ts'
import { MissingTool, runTool } from './run-tool.ts'

type Tools = { readonly nft: string; readonly ip: string; readonly iptables: string }

const usualTools: Tools = { nft: 'nft', ip: 'ip', iptables: 'iptables' }
const packages: { readonly [tool in keyof Tools]: string } = { nft: 'nftables', ip: 'iproute2', iptables: 'iptables' }
/** A machine under load starts a program in seconds. */
const deadlineMs = 15_000

/** Undefined: it can. What does not answer in time is not a reason: the parts that need it report it. */
export async function networkToolProblem(tools: Tools = usualTools): Promise<ToolProblem | undefined> {
  const missing: (keyof Tools)[] = []
  const started = async (tool: keyof Tools, args: readonly string[]) => {
    try {
      return await runTool(tools[tool], args, undefined, deadlineMs)
    } catch (error) {
      if (error instanceof MissingTool) missing.push(tool)
      return undefined
    }
  }
  const [listed] = await Promise.all([
    started('nft', ['list', 'tables']),
    started('ip', ['-Version']),
    started('iptables', ['--version']),
  ])
  if (missing.length > 0) {
    return {
      reason: 'ProgramsMissing',
      found: `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} not installed`,
      remedy: `Run 'apt-get install ${missing.map((tool) => packages[tool]).join(' ')}', then restart the agent`,
    }
  }
  if (listed === undefined || listed.code === 0) return undefined
  const [reason = ''] = listed.stderr.trim().split('\n')
  return {
    reason: 'FirewallUnavailable',
    found: `This agent cannot change the firewall of the machine: nft ended with ${reason.slice(0, 200) || `status ${listed.code}`}`,
    remedy: 'Run the agent as root, on a kernel with nf_tables, then restart it',
  }
}
