/** Ports of a bridge, through bridge(8). */
import { runToolOrThrow } from './run-tool.ts'

/**
 * Lets each port of the bridge receive what it sent: a pod that calls its own Service may be its endpoint. Docker sets this only
 * without its userland proxy, and each container has a new port.
 */
export async function reflectPorts(bridge: string, tool = 'bridge'): Promise<void> {
  const tried = `Cannot set hairpin mode on the ports of ${bridge}`
  const text = await runToolOrThrow(tried, tool, ['-j', '-d', 'link', 'show'])
  const lines = portsWithout(text, bridge).map((port) => `link set dev ${port} hairpin on\n`)
  // A container that ends meanwhile takes its port with it.
  if (lines.length > 0) await runToolOrThrow(tried, tool, ['-force', '-batch', '-'], lines.join('')).catch(ignoreGone)
}

function ignoreGone(error: unknown): void {
  if (!/Cannot find device|No such device/i.test(String(error))) throw error
}

/** In the output of `bridge -j -d link show`. */
function portsWithout(text: string, bridge: string): readonly string[] {
  const rows: unknown = text.trim() === '' ? [] : JSON.parse(text)
  if (!Array.isArray(rows)) return []
  return rows.flatMap(({ ifname, master, hairpin }: { readonly [name: string]: unknown }) =>
    typeof ifname === 'string' && master === bridge && hairpin !== true ? [ifname] : [],
  )
}
