/**
 * Measures the Kubernetes API of the controller: the real program in a process of its own, over TLS: writes, reads, a list, and
 * changes that many watches receive. See --help.
 */
import { cpus, loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { ApiLoad } from './api/api-load.ts'
import { type ApiServer, cpuMs, quantile, residentMB, withApiServer, writtenBytes } from './api/api-server.ts'
import { withKubeApiserver } from './api/kube-apiserver.ts'

const help = `Usage: node dist/bench/api.js [--against LAUNCHER] [--kube-apiserver FILE] [--controller LAUNCHER] [--list N] [--watches N] [--changes N]
       [--bytes N]

Starts bramble-controller in a temporary folder and measures it over TLS with an administrator's certificate. Prints a table.
Takes about a minute for each controller.

  --controller LAUNCHER  the program to measure; default scripts/bramble-controller
  --against LAUNCHER     another one, measured first in the same run: its figures are the left column
  --kube-apiserver FILE  Kubernetes' own, with one etcd (/usr/bin/etcd, without fsync), measured first in the same run
  --list N               objects in the list, default 3000
  --watches N            watches that receive each change, default 100
  --changes N            changes that they receive, default 200
  --bytes N              data in each object, default 300
`
const { values } = parseArgs({
  options: {
    controller: { type: 'string', default: 'scripts/bramble-controller' },
    against: { type: 'string' },
    'kube-apiserver': { type: 'string' },
    list: { type: 'string', default: '3000' },
    watches: { type: 'string', default: '100' },
    changes: { type: 'string', default: '200' },
    bytes: { type: 'string', default: '300' },
    help: { type: 'boolean', default: false },
  },
})
const listLength = Number(values.list)
const watchCount = Number(values.watches)
const changeCount = Number(values.changes)
const data = { text: 'x'.repeat(Number(values.bytes)) }
/** Written by one and by sixteen clients; with the list and the changes about as many as the outside comparison wrote. */
const writes = { one: 1000, sixteen: 3000 }
const reads = 2000
const eventCount = 5000
const restMs = 15_000

type Row = readonly [what: string, figure: string]

if (values.help) process.stdout.write(help)
else await compare()

async function compare(): Promise<void> {
  const kubernetes = values['kube-apiserver']
  const launchers = [...(values.against === undefined ? [] : [values.against]), values.controller]

  const [load = 0] = loadavg()
  console.log(`Node ${process.version}, ${cpus().length} cores, load ${load.toFixed(1)}\n`)
  const columns: (readonly Row[])[] = []
  if (kubernetes !== undefined) columns.push(await withKubeApiserver(kubernetes, figuresOf))
  for (const launcher of launchers) columns.push(await withApiServer(launcher, figuresOf))
  console.log(['', '', ...(kubernetes === undefined ? [] : [kubernetes]), ...launchers].join(' | ').trim())
  console.log(`|${' --- |'.repeat(columns.length + 1)}`)
  for (const [i, [what]] of (columns[0] ?? []).entries()) {
    console.log(`| ${[what, ...columns.map((rows) => rows[i]?.[1] ?? '')].join(' | ')} |`)
  }
}

async function figuresOf({ pid, load }: Pick<ApiServer, 'pid' | 'load'>): Promise<readonly Row[]> {
  await load.send({ method: 'GET', path: '/api/v1/namespaces' })
  await delay(2000)
  const residentBefore = await residentMB(pid)
  const rows: Row[] = []
  const timed = async (what: string, count: number, act: () => Promise<number>) => {
    const before = await cpuMs(pid)
    const seconds = await act()
    const cpu = ((await cpuMs(pid)) - before) / count
    rows.push([what, `${Math.round(count / seconds).toLocaleString('en')}/s, ${cpu.toFixed(2)} ms of processor each`])
  }
  for (const namespace of ['listed', 'written', 'watched']) await load.send(created('', namespace, 'Namespace'))
  await load.many(listLength, 16, (i) => created('listed', `map-${i}`))
  await timed('create, 1 writer', writes.one, () => load.many(writes.one, 1, (i) => created('written', `one-${i}`)))
  await timed('create, 16 writers', writes.sixteen, () =>
    load.many(writes.sixteen, 16, (i) => created('written', `many-${i}`)),
  )
  await timed('get, 16 readers', reads, () => load.many(reads, 16, (i) => ({ method: 'GET', path: pathOf(i) })))
  await timed('patch, 16 writers', reads, () =>
    load.many(reads, 16, (i) => ({ method: 'PATCH', path: pathOf(i), body: { data: { patched: `${i}` } } })),
  )
  await timed('delete, 16 writers', reads, () => load.many(reads, 16, (i) => ({ method: 'DELETE', path: pathOf(i) })))
  rows.push(...(await listing(pid, load)), ...(await watching(pid, load)), await refreshing(pid, load))
  rows.push(await clearing(pid, load))
  const residentAfter = await residentMB(pid)
  await delay(restMs)
  rows.push([
    'resident before, after, and at rest again',
    `${residentBefore}, ${residentAfter}, ${await residentMB(pid)} MB`,
  ])
  return rows
}

/** One client reads the whole list, again and again. */
async function listing(pid: number, load: ApiLoad): Promise<readonly Row[]> {
  const times = 40
  const took: number[] = []
  const path = '/api/v1/namespaces/listed/configmaps'
  const bytes = await load.send({ method: 'GET', path })
  const before = await cpuMs(pid)
  for (let i = 0; i < times; i++) took.push((await load.many(1, 1, () => ({ method: 'GET', path }))) * 1000)
  const cpu = ((await cpuMs(pid)) - before) / times
  const what = `list of ${listLength.toLocaleString('en')} (${(bytes / 1e6).toFixed(1)} MB)`
  return [[what, `${quantile(took, 0.5).toFixed(1)} ms, ${cpu.toFixed(1)} ms of processor`]]
}

/** One object is changed; the next change is made when all watches have received the one before. */
async function watching(pid: number, load: ApiLoad): Promise<readonly Row[]> {
  const path = '/api/v1/namespaces/watched/configmaps'
  await load.send(created('watched', 'map'))
  const [latencies, received] = [[] as number[], [] as number[]]
  let sentMs = 0
  let allReceived = () => {}
  for (let i = 0; i < watchCount; i++) {
    await load.watch(`${path}?watch=1&resourceVersion=0`, () => {
      received.push(performance.now() - sentMs)
      if (received.length === watchCount) allReceived()
    })
  }
  const once = async (act: () => Promise<unknown>) => {
    await new Promise<void>((resolve, reject) => {
      allReceived = resolve
      if (received.length >= watchCount) resolve()
      act().catch(reject)
    })
    latencies.push(...received.splice(0))
  }
  await once(async () => undefined) // each begins with the object as it is
  latencies.length = 0
  const before = await cpuMs(pid)
  for (let i = 0; i < changeCount; i++) {
    await once(() => {
      sentMs = performance.now()
      return load.send({ method: 'PATCH', path: `${path}/map`, body: { data: { change: `${i}` } } })
    })
  }
  const perEvent = (((await cpuMs(pid)) - before) * 1000) / (changeCount * watchCount)
  return [
    [
      `a change to ${watchCount} watches`,
      `p50 ${quantile(latencies, 0.5).toFixed(1)} ms, p99 ${quantile(latencies, 0.99).toFixed(1)} ms`,
    ],
    ['… processor for each event', `${perEvent.toFixed(0)} µs`],
  ]
}

/** The status of a node with 30 images, repeated as its agent does every 5 minutes: only its heartbeat is new. */
async function refreshing(pid: number, load: ApiLoad): Promise<Row> {
  const times = 50
  const images = Array.from({ length: 30 }, (_, i) => ({
    names: [`registry.example/team/image-${i}@sha256:${'0'.repeat(64)}`, `registry.example/team/image-${i}:1.0`],
    sizeBytes: i,
  }))
  const statusAt = (second: number) => ({
    conditions: [
      { type: 'Ready', status: 'True', lastHeartbeatTime: new Date(second * 1000).toISOString().replace('.000', '') },
    ],
    images,
  })
  await load.send({
    method: 'POST',
    path: '/api/v1/nodes',
    body: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'bench' } },
  })
  const refresh = (second: number) =>
    load.send({ method: 'PATCH', path: '/api/v1/nodes/bench/status', body: { status: statusAt(second) } })
  await refresh(0)
  await delay(1000) // what follows from a new node is written
  const before = await writtenBytes(pid)
  for (let i = 1; i <= times; i++) await refresh(i)
  await delay(1000)
  const each = ((await writtenBytes(pid)) - before) / times
  return ['written for each refresh of a node status', `${Math.round(each).toLocaleString('en')} bytes`]
}

/** As `kubectl delete events --all` does. */
async function clearing(pid: number, load: ApiLoad): Promise<Row> {
  const path = '/api/v1/namespaces/written/events'
  const namespace = 'written'
  await load.many(eventCount, 16, (i) => ({
    ...{ method: 'POST', path },
    body: {
      ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: `event-${i}`, namespace }, type: 'Normal' },
      ...{ reason: 'Bench', message: data.text, involvedObject: { kind: 'Pod', namespace, name: `pod-${i}` } },
    },
  }))
  const before = await cpuMs(pid)
  const seconds = await load.many(1, 1, () => ({ method: 'DELETE', path }))
  const cpu = ((await cpuMs(pid)) - before) / 1000
  const what = `delete a collection of ${eventCount.toLocaleString('en')} Events`
  return [what, `${seconds.toFixed(1)} s, ${cpu.toFixed(1)} s of processor`]
}

function pathOf(i: number): string {
  return `/api/v1/namespaces/written/configmaps/many-${i}`
}

function created(namespace: string, name: string, kind: 'ConfigMap' | 'Namespace' = 'ConfigMap') {
  const path = kind === 'Namespace' ? '/api/v1/namespaces' : `/api/v1/namespaces/${namespace}/configmaps`
  const metadata = { name, ...(kind === 'ConfigMap' && { labels: { app: 'bench' } }) }
  return {
    method: 'POST',
    path,
    body: { apiVersion: 'v1', kind, metadata, ...(kind === 'ConfigMap' && { data }) },
  } as const
}
