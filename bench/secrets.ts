/** Measures durable writes of Secrets. `--help` prints the usage. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../broker-controller/store/sqlite/sqlite-store.ts'
import { systemClock as clock } from '../daemon/clock.ts'
import { openLog } from '../daemon/log.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const { writes, bytes, rounds } = benchmarkOptions({
  name: 'node dist/bench/secrets.js',
  text: 'Measures durable writes of Secrets in the SQLite store, plain and encrypted, one after another and 32 at once.',
  options: {
    writes: { value: 'N', help: 'Secrets to write in each measurement', range: [1, 1_000_000], default: '3000' },
    bytes: { value: 'BYTES', help: 'size of the value in each', range: [0, 1_000_000], default: '1024' },
    rounds: { value: 'N', help: 'rounds', range: [1, 1_000], default: '3' },
  },
})
const log = openLog({ level: 'error', format: 'json', write: (line) => void process.stderr.write(line) })
const data = { value: Buffer.alloc(bytes, 'x').toString('base64') }

for (let round = 1; round <= rounds; round++) {
  for (const atOnce of [1, 32]) {
    const plain = await perSecond(atOnce, false)
    const encrypted = await perSecond(atOnce, true)
    const line = `round ${round}, ${atOnce} at once: plain ${plain}/s, encrypted ${encrypted}/s (${Math.round((encrypted / plain) * 100)} %)`
    process.stdout.write(`${line}\n`)
  }
}

async function perSecond(atOnce: number, isEncrypted: boolean): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-secrets-'))
  const key = isEncrypted ? { secretsKeyFile: join(folder, 'secrets.key') } : {}
  const { store } = await openSqliteStore({ path: join(folder, 'store.db'), clock, log, ...key })
  try {
    const began = performance.now()
    let next = 0
    const writer = async () => {
      for (let at = next++; at < writes; at = next++) {
        const metadata = { name: `secret-${at}`, namespace: 'default' }
        await store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata, data })
      }
    }
    await Promise.all(Array.from({ length: atOnce }, writer))
    return Math.round((writes / (performance.now() - began)) * 1000)
  } finally {
    await store.close()
    await rm(folder, { recursive: true })
  }
}
