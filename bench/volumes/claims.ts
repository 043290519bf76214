/** Measures how long many claims wait for their volumes. `--help` prints the usage. */
import { cpus, loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { type ApiServer, cpuMs, peakMB, quantile, withApiServer, writtenBytes } from '../api/api-server.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'

const { claims } = benchmarkOptions({
  name: 'node dist/bench/volumes/claims.js',
  text: `Starts bramble-controller with a SQLite store in a temporary folder, and makes claims and as many volumes of different sizes: the volumes
first, then the claims first. Prints for each order how long it takes from the first write of the second kind until all claims are bound (goal: at
most 60 s for 10,000), the CPU time and the bytes written by the controller, and how long a reading client waits meanwhile. Takes some minutes.`,
  options: {
    claims: { value: 'N', help: 'number of claims', range: [1, 100_000], default: '10000' },
  },
})
const writers = 16
const readEveryMs = 100
const pollMs = 500
const goalSeconds = 60

console.log(`Node ${process.version}, ${cpus().length} cores, load ${(loadavg()[0] ?? 0).toFixed(1)}\n`)
console.log(`| first | ${claims} bound after | CPU time | written | highest memory | a request: median, 99 % |`)
console.log('| --- | --- | --- | --- | --- | --- |')
const took = [await ordered('volumes', addVolumes, addClaims), await ordered('claims', addClaims, addVolumes)]
if (claims === 10_000 && Math.max(...took) > goalSeconds) process.exitCode = 1

type Add = (server: ApiServer) => Promise<unknown>

function ordered(first: string, before: Add, after: Add): Promise<number> {
  return withApiServer('scripts/bramble-controller', async (server) => {
    const { pid, load } = server
    await before(server)
    await delay(5_000)
    const [cpuBefore, writtenBefore, beganMs] = [await cpuMs(pid), await writtenBytes(pid), performance.now()]
    const stop = new AbortController()
    const reading = readers(server, stop.signal)
    await after(server)
    while ((await boundClaims(load)) < claims) await delay(pollMs)
    const seconds = (performance.now() - beganMs) / 1000
    stop.abort()
    const waits = await reading
    const cpu = (await cpuMs(pid)) - cpuBefore
    const written = (await writtenBytes(pid)) - writtenBefore
    const requests = [0.5, 0.99].map((part) => `${quantile(waits, part).toFixed(0)} ms`).join(', ')
    const figures = [`${seconds.toFixed(1)} s`, `${(cpu / 1000).toFixed(1)} s`, `${(written / 1e6).toFixed(0)} MB`]
    console.log(`| ${first} | ${[...figures, `${await peakMB(pid)} MB`, requests].join(' | ')} |`)
    return seconds
  })
}

/** How long each request of a client took that reads an object all the time. */
async function readers({ load }: ApiServer, signal: AbortSignal): Promise<readonly number[]> {
  const waits: number[] = []
  while (!signal.aborted) {
    const beganMs = performance.now()
    await load.send({ method: 'GET', path: '/api/v1/namespaces/default' })
    waits.push(performance.now() - beganMs)
    await delay(readEveryMs)
  }
  return waits
}

async function boundClaims(load: ApiServer['load']): Promise<number> {
  const text = await load.read('/api/v1/persistentvolumeclaims')
  const { items } = JSON.parse(text) as { readonly items: readonly { readonly status?: { readonly phase?: string } }[] }
  return items.filter(({ status }) => status?.phase === 'Bound').length
}

function addClaims({ load }: ApiServer): Promise<number> {
  return load.many(claims, writers, (at) => {
    const resources = { requests: { storage: sizeOf(at, 1) } }
    const spec = { resources, accessModes: ['ReadWriteOnce'], storageClassName: 'disk' }
    const body = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: `data-${at}` }, spec }
    return { method: 'POST', path: '/api/v1/namespaces/default/persistentvolumeclaims', body }
  })
}

function addVolumes({ load }: ApiServer): Promise<number> {
  return load.many(claims, writers, (at) => {
    const capacity = { storage: sizeOf(at, 100) }
    const source = { hostPath: { path: `/srv/disk-${at}` }, persistentVolumeReclaimPolicy: 'Retain' }
    const spec = { capacity, accessModes: ['ReadWriteOnce'], storageClassName: 'disk', ...source }
    const body = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `disk-${at}` }, spec }
    return { method: 'POST', path: '/api/v1/persistentvolumes', body }
  })
}

/** Any of the volumes is large enough for any of the claims, so that all get one in whatever order they come. */
function sizeOf(at: number, least: number): string {
  return `${least + (at % 97)}Gi`
}
