/** The kernel's table of connections, through conntrack(8). Its options and its output appear here only. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { RuleFamily } from '../../network/rule-family.ts'
import type { FlowTable } from '../../network/services/flow-cleaner.ts'
import type { UdpFlow } from '../../network/services/stale-flows.ts'
import { MissingTool, runTool } from './run-tool.ts'

const listMs = 60_000
/** Its status where no entry matches. */
const nothingFound = 1

/** Rejects with `MissingTool` where the package conntrack is not installed. `family`: of the flows. */
export function conntrackFlows({ family }: RuleFamily, conntrack = 'conntrack'): FlowTable {
  const ofFamily = family === 'IPv4' ? [] : ['-f', 'ipv6']
  return {
    // Line by line: the table may have 262,144 entries (nf_conntrack_max).
    async list(isWanted, most) {
      const found = new Map<string, UdpFlow>()
      const child = spawn(conntrack, ['-L', ...ofFamily, '-p', 'udp'], { stdio: ['ignore', 'pipe', 'ignore'] })
      // Node.js leaves its own timer of a program that does not start.
      const late = setTimeout(() => child.kill(), listMs)
      const closed = once(child, 'close').finally(() => clearTimeout(late))
      closed.catch(() => undefined)
      for await (const line of createInterface({ input: child.stdout })) {
        const flow = flowIn(line)
        if (flow !== undefined && found.size < most && isWanted(flow)) found.set(JSON.stringify(flow), flow)
      }
      const [code] = await closed.catch(() => {
        throw new MissingTool(conntrack)
      })
      if (code !== 0) throw new Error(`Cannot list connections: ${conntrack} ended with status ${code}`)
      return [...found.values()]
    },
    async remove({ address, port, endpoint, endpointPort }) {
      const from = ['--orig-dst', address, '--dport', String(port)]
      const to = ['--reply-src', endpoint, '--reply-port-src', String(endpointPort)]
      const { code, stderr } = await runTool(conntrack, ['-D', ...ofFamily, '-p', 'udp', ...from, ...to])
      if (code > nothingFound) throw new Error(`Cannot remove connections to ${endpoint}: ${stderr.slice(0, 500)}`)
    },
  }
}

const entry = /^udp\s.* src=\S+ dst=(\S+) sport=\d+ dport=(\d+) .*src=(\S+) dst=\S+ sport=(\d+) dport=\d+/

/** Undefined: the line is not an entry of UDP. */
export function flowIn(line: string): UdpFlow | undefined {
  const [, address, port, endpoint, endpointPort] = entry.exec(line) ?? []
  if (address === undefined || endpoint === undefined) return undefined
  return { address, port: Number(port), endpoint, endpointPort: Number(endpointPort) }
}
