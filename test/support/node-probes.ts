/** The probe by which an agent without a controller finds the nodes that do not answer. */
import type { NodeAnswer } from '../../agent/network/services/silent-nodes.ts'

/** What it finds at the address from that machine. */
export async function probedFrom(
  { run }: { run(...line: readonly string[]): Promise<string> },
  address: string,
): Promise<NodeAnswer> {
  const adapter = new URL('../../agent/adapters/network/node-probe.js', import.meta.url).href
  const script = `import('${adapter}').then(async ({ nodeProbe }) => console.log(await nodeProbe({ root: '/' })('${address}')))`
  return (await run(process.execPath, '-e', script)).trim() as NodeAnswer
}
