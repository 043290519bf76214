/**
 * A process that writes to a store until it is killed: `node store-writer.js PATH`. Each answer is one line on standard
 * output, `NAME VERSION ROUND`, written before the next write begins. Ends by itself only when a write is refused: then
 * with `refused`, what readers see of the refused object,
 * the round, and why.
 */
import { writeSync } from 'node:fs'
import type { ConfigMap } from '../../api/config-map.ts'
import { systemClock } from '../../daemon/clock.ts'
import { openLog } from '../../daemon/log.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'

const [path = '', padding = '200'] = process.argv.slice(2)
const log = openLog({ level: 'error', format: 'json', write: (line) => writeSync(2, line) })
const { store } = await openSqliteStore({ path, clock: systemClock, log })
writeSync(1, 'open\n')

async function writer(name: string): Promise<void> {
  for (let round = 0; ; round++) {
    const data = { round: `${round}`, writer: `${process.pid}`, padding: 'x'.repeat(Number(padding)) }
    const map: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data }
    const present = await store.get('configmaps', { namespace: 'default', name })
    try {
      const { metadata } = await (present === undefined
        ? store.create('configmaps', map)
        : store.update('configmaps', map))
      writeSync(1, `${name} ${metadata.resourceVersion} ${round}\n`)
    } catch (error) {
      const seen = await store.get('configmaps', { namespace: 'default', name })
      writeSync(1, `refused ${seen?.data?.['round'] ?? 'none'} ${round} ${error}\n`)
      process.exit(0)
    }
    await store.create('leases', {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: `${name}-${round}-${process.pid}`, namespace: 'kube-node-lease' },
    })
  }
}

await Promise.all([writer('a'), writer('b'), writer('c')])
