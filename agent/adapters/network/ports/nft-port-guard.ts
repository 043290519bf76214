/** The table of ports in the kernel, through nft(8). */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { portGuardPrefix, portGuardRemoval } from '../../../network/ports/port-guard.ts'
import type { PortTable } from '../../../network/ports/port-guard-manager.ts'
import { runTool, runToolOrThrow } from '../run-tool.ts'

/** `root`: where the kernel's files are found. */
export function nftPortGuard(root: string, nft = 'nft'): PortTable {
  const tried = 'Cannot restrict the ports of pods to their own addresses'
  const names = async () => {
    const { code, stdout } = await runTool(nft, ['list', 'tables', 'bridge'])
    const all = code === 0 ? [...stdout.matchAll(/^table bridge (\S+)$/gm)].map(([, name = '']) => name) : []
    return all.filter((name) => name.startsWith(portGuardPrefix))
  }
  const run = (transaction: string) => runToolOrThrow(tried, nft, ['-f', '-'], transaction)
  return {
    async apply(transaction) {
      await run(transaction)
    },
    async isIntact(name) {
      const { code, stdout } = await runTool(nft, ['list', 'chains', 'bridge'])
      return code === 0 && entersPorts(name, stdout)
    },
    async remove(name) {
      if ((await names()).includes(name)) await run(portGuardRemoval([name]))
    },
    async removeUnused(name) {
      const links = new Set(await readdir(join(root, 'sys/class/net')))
      for (const other of await names()) {
        if (other === name) continue
        const { code, stdout } = await runTool(nft, ['list', 'set', 'bridge', other, 'ports'])
        // It is another program's, or was removed meanwhile.
        if (code !== 0) continue
        const ports = [...stdout.matchAll(/"([^"]+)"/g)].map(([, port = '']) => port)
        if (!ports.some((port) => links.has(port))) await run(portGuardRemoval([other]))
      }
    },
  }
}

/** `chains`: as `nft list chains` prints those of all tables. Lines of a table begin with a tab. */
export function entersPorts(name: string, chains: string): boolean {
  const [, table = ''] = chains.split(`table bridge ${name} {\n`)
  return /^(?:\t.*\n|\n)*?\t+type filter hook prerouting /.test(table)
}
