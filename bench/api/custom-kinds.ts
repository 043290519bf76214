/** Measures kinds that CustomResourceDefinitions define, beside a built-in one. `--help` prints the usage. */
import { readdir, readFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { benchmarkOptions } from '../options/benchmark-options.ts'
import { type ApiServer, cpuMs, quantile, residentMB, withApiServer } from './api-server.ts'

const values = benchmarkOptions({
  name: 'node dist/bench/api/custom-kinds.js',
  text: `Starts bramble-controller in temporary folders. The first prints how much memory definitions of custom kinds take that have no objects: after
they were made (once they were made and removed before), at rest, and after one client has listed and watched some of their kinds. The second prints
how long a start takes with them. The third prints what a custom kind costs beside ConfigMaps of the same size, in turns in the same run: creates, a
list, and changes that many watches receive. Takes about five minutes.
Needs bundles (npm run build).`,
  options: {
    folder: {
      value: 'DIR',
      help: 'definitions to make: files of JSON, also compressed (.json.gz)',
      defaultText: 'made up',
    },
    definitions: { value: 'N', help: 'made-up definitions', range: [0, 1_000], default: '85' },
    fields: { value: 'N', help: 'fields of each of them', range: [1, 5_000], default: '600' },
    informers: { value: 'N', help: 'kinds that one client lists and watches', range: [0, 1_000], default: '20' },
    list: { value: 'N', help: 'objects in the list', range: [1, 100_000], default: '3000' },
    watches: { value: 'N', help: 'watches that receive each change', range: [1, 1_000], default: '100' },
    changes: { value: 'N', help: 'changes that they receive', range: [1, 100_000], default: '200' },
    bytes: { value: 'BYTES', help: 'data in each object', range: [0, 100_000], default: '300' },
    rest: { value: 'S', help: 'seconds until memory is at rest', range: [1, 10_000], default: '60' },
  },
})
const starts = 7
const launcher = 'scripts/bramble-controller'
const definitionsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

type Definition = {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly group: string
    readonly names: { readonly plural: string }
    readonly versions: readonly { readonly name: string; readonly served: boolean }[]
  }
}

/** Memory of definitions without objects. */
async function atRest({ pid, load }: ApiServer): Promise<void> {
  const definitions = await definitionsToMake()
  const bytes = definitions.reduce((sum, one) => sum + JSON.stringify(one).length, 0)
  const make = async () => {
    for (const body of definitions) await load.send({ method: 'POST', path: definitionsPath, body })
  }
  // What the process takes once it has done this at all, such as compiled code and room of its heap, is not the definitions'.
  await make()
  for (const { metadata } of definitions)
    await load.send({ method: 'DELETE', path: `${definitionsPath}/${metadata.name}` })
  await delay(values.rest * 1000)
  const before = await residentMB(pid)
  const began = await cpuMs(pid)
  await make()
  const perDefinition = ((await cpuMs(pid)) - began) / Math.max(1, definitions.length)
  const made = await residentMB(pid)
  await delay(values.rest * 1000)
  const rested = await residentMB(pid)
  const paths = definitions.slice(0, values.informers).map(collectionOf)
  for (const path of paths) {
    await load.send({ method: 'GET', path })
    await load.watch(`${path}?watch=1&allowWatchBookmarks=true`, () => {})
  }
  await delay(values.rest * 1000)
  const watched = await residentMB(pid)
  await load.send({ method: 'GET', path: '/openapi/v2' })
  const described = await residentMB(pid)
  await delay(values.rest * 1000)
  const rows: readonly Row[] = [
    ['definitions', `${definitions.length}, ${(bytes / 1e6).toFixed(2)} MB of JSON`],
    ['processor for each', `${perDefinition.toFixed(0)} ms`],
    ['resident before, once they are made, at rest', `${before}, ${made}, ${rested} MB (${more(rested - before)})`],
    [`at rest with a list and a watch of ${paths.length} kinds`, `${watched} MB (${more(watched - before)})`],
    ['after /openapi/v2, at rest again', `${described}, ${await residentMB(pid)} MB`],
  ]
  print(['', 'figure'], rows)
}

/** How long a start takes, without the definitions and with them. */
async function starting({ load, startAgain }: ApiServer, definitions: readonly Definition[]): Promise<number> {
  for (const body of definitions) await load.send({ method: 'POST', path: definitionsPath, body })
  const took: number[] = []
  for (let at = 0; at < starts; at++) took.push(await startAgain())
  return quantile(took, 0.5)
}

async function startsSideBySide(): Promise<void> {
  const definitions = await definitionsToMake()
  const without = await withApiServer(launcher, (server) => starting(server, []))
  const made = await withApiServer(launcher, (server) => starting(server, definitions))
  const times = `${without.toFixed(0)}, ${made.toFixed(0)} ms (${more(Math.round(made - without))})`
  print(['', 'without, with definitions'], [[`until it is ready, median of ${starts} starts`, times]])
}

function more(difference: number): string {
  return difference < 0 ? `${difference}` : `+${difference}`
}

async function definitionsToMake(): Promise<readonly Definition[]> {
  const { folder } = values
  if (folder === undefined) return Array.from({ length: values.definitions }, (_, index) => definition(`made${index}s`))
  const names = (await readdir(folder)).filter((name) => /\.json(\.gz)?$/.test(name)).sort()
  return Promise.all(
    names.map(async (name) => {
      const content = await readFile(join(folder, name))
      return JSON.parse((name.endsWith('.gz') ? gunzipSync(content) : content).toString())
    }),
  )
}

function collectionOf({ spec: { group, names, versions } }: Definition): string {
  const version = versions.find(({ served }) => served)?.name ?? ''
  return `/apis/${group}/${version}/${names.plural}`
}

/** As those of operators: objects in objects, each with a description. */
function definition(plural: string): Definition {
  const description = 'What this field of the object is for, in a sentence of about a hundred characters, as is usual.'
  const field = (index: number) => [`field${index}`, { type: index % 3 === 0 ? 'integer' : 'string', description }]
  const parts = Array.from({ length: Math.ceil(values.fields / 20) }, (_, part) => [
    `part${part}`,
    { type: 'object', description, properties: Object.fromEntries(Array.from({ length: 20 }, (_, at) => field(at))) },
  ])
  const kind = `${plural.slice(0, 1).toUpperCase()}${plural.slice(1, -1)}`
  const object = { type: 'object', description, properties: Object.fromEntries(parts) }
  const data = { type: 'object', additionalProperties: { type: 'string' } }
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec: object, data } } }
  const content = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.bench.example.com` },
    spec: {
      group: 'bench.example.com',
      scope: 'Namespaced',
      names: { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  }
  return content
}

type Row = readonly string[]
type Kind = { readonly title: string; readonly collection: string; readonly apiVersion: string; readonly kind: string }

const data = { text: 'x'.repeat(values.bytes) }
const creates = 3_000
const lists = 20
const writers = 16
const namespace = 'bench'
const kinds: readonly [builtIn: Kind, custom: Kind] = [
  { title: 'ConfigMap', collection: `/api/v1/namespaces/${namespace}/configmaps`, apiVersion: 'v1', kind: 'ConfigMap' },
  {
    title: 'custom kind',
    collection: `/apis/bench.example.com/v1/namespaces/${namespace}/sides`,
    apiVersion: 'bench.example.com/v1',
    kind: 'Side',
  },
]

/** The same with a built-in kind and a custom one. */
async function sideBySide(server: ApiServer): Promise<void> {
  const { load } = server
  const metadata = { name: namespace }
  await load.send({
    method: 'POST',
    path: '/api/v1/namespaces',
    body: { apiVersion: 'v1', kind: 'Namespace', metadata },
  })
  await load.send({ method: 'POST', path: definitionsPath, body: definition('sides') })
  await served(server, kinds[1])
  const columns: Row[] = []
  for (const kind of kinds) columns.push([...(await creating(server, kind)), ...(await listing(server, kind))])
  for (const [at, kind] of kinds.entries()) columns[at] = [...(columns[at] ?? []), ...(await watching(server, kind))]
  const heads = [
    'create, 16 writers',
    `list of ${values.list}`,
    `a change to ${values.watches} watches`,
    'processor for each event',
  ]
  print(
    ['', ...kinds.map(({ title }) => title)],
    heads.map((head, row) => [head, ...columns.map((column) => column[row] ?? '')]),
  )
}

async function served({ load }: ApiServer, { collection }: Kind): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    if (
      await load.read(collection).then(
        () => true,
        () => false,
      )
    )
      return
    await delay(50)
  }
  throw new Error(`${collection} is not served`)
}

function createdIn({ apiVersion, kind, collection }: Kind, name: string) {
  return { method: 'POST', path: collection, body: { apiVersion, kind, metadata: { name }, data } } as const
}

async function creating({ pid, load }: ApiServer, kind: Kind): Promise<Row> {
  const before = await cpuMs(pid)
  const count = Math.max(creates, values.list)
  const seconds = await load.many(count, writers, (i) => createdIn(kind, `object-${i}`))
  const cpu = ((await cpuMs(pid)) - before) / count
  await load.many(count - values.list, writers, (i) => ({
    method: 'DELETE',
    path: `${kind.collection}/object-${values.list + i}`,
  }))
  return [`${Math.round(count / seconds)}/s, ${cpu.toFixed(2)} ms of processor each`]
}

async function listing({ pid, load }: ApiServer, { collection: path }: Kind): Promise<Row> {
  const bytes = await load.send({ method: 'GET', path })
  const took: number[] = []
  const before = await cpuMs(pid)
  for (let at = 0; at < lists; at++) took.push((await load.many(1, 1, () => ({ method: 'GET', path }))) * 1000)
  const cpu = ((await cpuMs(pid)) - before) / lists
  return [`${quantile(took, 0.5).toFixed(1)} ms, ${cpu.toFixed(1)} ms of processor, ${(bytes / 1e6).toFixed(1)} MB`]
}

/** The next change is made when all watches have received the one before. */
async function watching({ pid, load }: ApiServer, kind: Kind): Promise<Row> {
  const name = 'object-0'
  const selected = `${kind.collection}?watch=1&resourceVersion=0&fieldSelector=metadata.name=${name}`
  const [latencies, received] = [[] as number[], [] as number[]]
  let sentMs = 0
  let allReceived = () => {}
  const round = async (act: () => Promise<unknown>) => {
    await new Promise<void>((resolve, reject) => {
      allReceived = resolve
      if (received.length >= values.watches) resolve()
      act().catch(reject)
    })
    latencies.push(...received.splice(0))
  }
  for (let at = 0; at < values.watches; at++) {
    await load.watch(selected, () => {
      received.push(performance.now() - sentMs)
      if (received.length === values.watches) allReceived()
    })
  }
  await round(async () => undefined) // each begins with the object as it is
  latencies.length = 0
  const before = await cpuMs(pid)
  for (let change = 0; change < values.changes; change++) {
    await round(() => {
      sentMs = performance.now()
      return load.send({ method: 'PATCH', path: `${kind.collection}/${name}`, body: { data: { change: `${change}` } } })
    })
  }
  const perEvent = (((await cpuMs(pid)) - before) * 1000) / (values.changes * values.watches)
  return [
    `p50 ${quantile(latencies, 0.5).toFixed(1)} ms, p99 ${quantile(latencies, 0.99).toFixed(1)} ms`,
    `${perEvent.toFixed(0)} µs`,
  ]
}

function print(heads: Row, rows: readonly Row[]): void {
  for (const row of [heads, heads.map(() => '---'), ...rows]) console.log(`| ${row.join(' | ')} |`)
  console.log()
}

const [load = 0] = loadavg()
console.log(`Node ${process.version}, ${cpus().length} cores, load ${load.toFixed(1)}\n`)
await withApiServer(launcher, atRest)
await startsSideBySide()
await withApiServer(launcher, sideBySide)
