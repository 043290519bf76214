/** Measures the network traffic of an idle node. `--help` prints the usage. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startDockerd } from '../test/support/dockerd.ts'
import { machineNetwork } from '../test/support/machine-network.ts'
import { type Counted, nodeInSpace } from './network/node-in-space.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/wire.js',
  text: `Measures the network traffic of an idle node: an agent in a network namespace of its own, joined to a controller outside of it by a pair of
virtual interfaces. The kernel's counters of the pair include the headers of Ethernet, IP and TCP. Prints a table. Needs root, ip, docker.io, and
bundles (npm run build).`,
  options: {
    tree: { value: 'DIR', help: 'measure the programs of this checkout in the same run', repeated: true },
    metered: { help: 'measure an agent of this tree with metered: true, too' },
    seconds: { value: 'S', help: 'how long bytes are counted', range: [1, 1_000_000], default: '600' },
    settle: { value: 'S', help: 'seconds after the start before they are counted', range: [0, 100_000], default: '90' },
  },
})
const here = fileURLToPath(new URL('../..', import.meta.url))
const ends: (() => Promise<unknown>)[] = []
const ending = { teardown: (end: () => Promise<unknown>) => void ends.push(end) }

type Measured = { readonly name: string; readonly settings?: Readonly<Record<string, unknown>>; readonly tree: string }

try {
  const folder = await mkdtemp(join(tmpdir(), 'bw-'))
  ending.teardown(() => rm(folder, { recursive: true, force: true }))
  const trees: Measured[] = [
    ...values.tree.map((tree) => ({ name: tree, tree: resolve(tree) })),
    { name: 'this tree', tree: here },
    ...(values.metered ? [{ name: 'this tree, metered', tree: here, settings: { metered: true } }] : []),
  ]
  const dockerd = await startDockerd(ending)
  await dockerd.importImage('test/busybox:1', ['sleep', '100000'])
  const network = await machineNetwork(ending)
  const counters: (() => Promise<Counted>)[] = []
  for (const [index, one] of trees.entries()) {
    const place = { folder: join(folder, String(index)), index, docker: dockerd.socket, network }
    counters.push((await nodeInSpace({ ...one, ...place, teardown: ending.teardown })).count)
  }
  await delay(values.settle * 1000)
  const before = await Promise.all(counters.map((count) => count()))
  await delay(values.seconds * 1000)
  const after = await Promise.all(counters.map((count) => count()))
  console.log(
    `| | bytes in ${values.seconds} s | MB a month | packets | of IP: bytes | MB a month |\n|---|---|---|---|---|---|`,
  )
  for (const [index, { name }] of trees.entries()) {
    const more = (field: keyof Counted) => (after[index]?.[field] ?? 0) - (before[index]?.[field] ?? 0)
    const month = (bytes: number) => ((bytes / values.seconds) * 30 * 0.0864).toFixed(1)
    const [bytes, ipBytes] = [more('bytes'), more('ipBytes')]
    console.log(`| ${[name, bytes, month(bytes), more('packets'), ipBytes, month(ipBytes)].join(' | ')} |`)
  }
} catch (error) {
  console.error(error)
  process.exitCode = 1
} finally {
  for (const end of ends.reverse()) await end().catch((error: unknown) => console.error(error))
}
