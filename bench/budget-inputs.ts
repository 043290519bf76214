/**
 * As bench/budget.ts, for what is not the body of an object: messages of nodes on every topic, parts of checkpoints, options of
 * lists of 3,000 objects, JSON patches and certificate requests. Prints the longest time that each held the event loop, in CPU
 * time, the least of some runs, and exits with 1 when one took more than 100 ms. An argument: a part of the names of the cases to run.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Identity, mastersGroup, nodesGroup } from '../api/identity.ts'
import { aNode, aPod } from '../api/testing/builders.ts'
import { type NodeTopic, topicRules } from '../api/topics.ts'
import { openAuthorizer } from '../broker-controller/apiserver/access/authorizer.ts'
import { serviceNetwork } from '../broker-controller/apiserver/handlers/service-network.ts'
import { answerRequest } from '../broker-controller/apiserver/requests.ts'
import { parseYamlBody } from '../broker-controller/apiserver/wire/yaml-body.ts'
import { nodeInbox } from '../broker-controller/broker/inbox/node-inbox.ts'
import { defaultBrokerLimits } from '../broker-controller/broker/mqtt/broker-limits.ts'
import { builtInKinds } from '../broker-controller/control-plane.ts'
import { sessionBoard } from '../broker-controller/sessions/session-board.ts'
import { eventRecorder } from '../broker-controller/store/event-recorder.ts'
import { openSqliteStore } from '../broker-controller/store/sqlite/sqlite-store.ts'
import { largeValues } from '../broker-controller/testing/largest-objects.ts'
import { usageBoard } from '../broker-controller/usage/usage-board.ts'
import { commonNameOfCSR } from '../certs/csr-check.ts'
import { systemClock as clock } from '../daemon/clock.ts'
import { openLog } from '../daemon/log.ts'
import { metricsRegistry } from '../daemon/metrics-registry.ts'

const budgetMs = 100
const runs = 3
const mostBodyBytes = 3 * 2 ** 20
const [only = ''] = process.argv.slice(2)
const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line.slice(0, 2000)) })
const administrator: Identity = { user: 'admin', groups: [mastersGroup] }
const node: Identity = { user: 'system:node:pi-1', groups: [nodesGroup] }
const folder = await mkdtemp(join(tmpdir(), 'bramble-budget-'))
const slow: string[] = []
let stores = 0

try {
  await messages()
  await checkpoints()
  await lists()
  await patches()
  await applies()
  await requests()
} finally {
  await rm(folder, { recursive: true, force: true })
}
console.log(slow.length === 0 ? `none above ${budgetMs} ms` : `above ${budgetMs} ms: ${slow.join(', ')}`)
process.exitCode = slow.length > 0 ? 1 : 0

async function messages(): Promise<void> {
  const kinds = ['connection', 'lease', 'status', 'pod', 'events', 'stats'] as const
  for (const kind of kinds) {
    const topic: NodeTopic = kind === 'pod' ? { kind, node: 'pi-1', uid: 'u1' } : { kind, node: 'pi-1' }
    const bodies = largeValues(topicRules[kind].schema).map(({ field, object }) => ({ field, body: largest(object) }))
    const text = { seq: 1, digest: 'x'.repeat(defaultBrokerLimits.maxPacketBytes - 100), state: 'online', bootID: 'x' }
    for (const { field, body } of [...bodies, { field: 'a long text', body: JSON.stringify(text) }]) {
      const { world, close } = await aStore()
      await world.store.create('nodes', withoutStamps(aNode({ name: 'pi-1' })))
      const pod = aPod({ name: '0', namespace: '0', nodeName: 'pi-1' })
      const made = await world.store.create('pods', {
        ...withoutStamps(pod),
        metadata: { name: '0', namespace: '0', uid: 'u1' },
      })
      const inbox = nodeInbox({
        ...world,
        usage: usageBoard({ clock }),
        sessions: sessionBoard({ clock }),
        broker: { publish: async () => undefined },
        podsOf: () => [made],
        registry: metricsRegistry(),
      })
      await measure(`message ${kind} ${field}`, body.length, async () => inbox.message({ node: 'pi-1', topic, body }))
      await close()
    }
  }
}

/** As many items as fit into a packet. */
function largest(object: (items: number, salt: string) => object): string {
  const hundred = JSON.stringify(object(100, 'a')).length
  const items = Math.floor((defaultBrokerLimits.maxPacketBytes * 100) / hundred)
  for (let count = items; ; count = Math.floor(count * 0.95)) {
    const body = JSON.stringify(object(count, 'a'))
    if (body.length < defaultBrokerLimits.maxPacketBytes) return body
  }
}

async function checkpoints(): Promise<void> {
  const pod = (number: number) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `pod-${number}`, namespace: 'default', uid: `uid-${number}` },
    spec: { nodeName: 'pi-1', containers: [{ name: 'main', image: 'image:1' }] },
  })
  const data = (kind: string, bytes: number) => (number: number) => ({
    apiVersion: 'v1',
    kind,
    metadata: { name: `data-${number}`, namespace: 'default' },
    data: { value: Buffer.alloc(bytes, 'a').toString(kind === 'Secret' ? 'base64' : 'utf8') },
  })
  const naming = {
    ...pod(0),
    spec: {
      nodeName: 'pi-1',
      containers: [{ name: 'main', image: 'image:1' }],
      volumes: Array.from({ length: 500 }, (_, number) => [
        { name: `s-${number}`, secret: { secretName: `data-${number}` } },
        { name: `c-${number}`, configMap: { name: `data-${number}` } },
      ]).flat(),
    },
  }
  const parts = {
    'pods without number': { pods: Array.from({ length: 1000 }, (_, number) => pod(number)) },
    'secrets that it names': {
      pods: [naming],
      secrets: Array.from({ length: 500 }, (_, n) => data('Secret', 3000)(n)),
    },
    'config maps that it names': {
      pods: [naming],
      configMaps: Array.from({ length: 500 }, (_, n) => data('ConfigMap', 4000)(n)),
    },
    'large secrets': { pods: [naming], secrets: [data('Secret', 700_000)(0), data('Secret', 700_000)(1)] },
  }
  for (const [what, part] of Object.entries(parts)) {
    const body = JSON.stringify({ apiVersion: 'bramble.dev/v1alpha1', kind: 'NodeCheckpoint', store: 'store', ...part })
    for (let run = 0; run < 1; run++) {
      const { world, close, send } = await aStore()
      await world.store.create('nodes', withoutStamps(aNode({ name: 'pi-1' })))
      await measure(`checkpoint ${what}`, body.length, () =>
        send('POST', '/api/v1/nodes/pi-1/checkpoint', '', 'json', body, node),
      )
      await close()
    }
  }
}

async function lists(): Promise<void> {
  const { world, close, send } = await aStore()
  const made = Array.from({ length: 3000 }, (_, number) =>
    world.store.create('pods', {
      ...withoutStamps(aPod({ name: 'a', nodeName: 'pi-1' })),
      metadata: { name: `pod-${number}`, namespace: 'default', labels: { app: `app-${number}`, tier: 'web' } },
    }),
  )
  await Promise.all(made)
  // A request line and its headers have 16 kB (Node.js' limit).
  const many = (one: (number: number) => string) => {
    let text = one(0)
    for (let number = 1; text.length < 15_500; number++) text += `,${one(number)}`
    return text
  }
  const options = {
    'no selector': {},
    'labels, each another': { labelSelector: many((number) => `app!=x${number}`) },
    'labels, the same again': { labelSelector: many(() => 'tier=web') },
    'labels, a long set': { labelSelector: `app in (${many((number) => `app-x${number}`)})` },
    'labels, many sets': { labelSelector: many((number) => `tier notin (a${number},b${number},c${number})`) },
    'labels, no end': { labelSelector: `app in (${'('.repeat(15_000)}` },
    'fields, the same again': { fieldSelector: many(() => 'spec.nodeName=pi-1') },
    'fields, each another': { fieldSelector: many((number) => `metadata.name!=x${number}`) },
    'fields, escaped': { fieldSelector: `metadata.name=${'\\\\'.repeat(7_500)}` },
    'pages of 500': { limit: '500' },
    'continue from the middle': {
      limit: '500',
      continue: Buffer.from('["1","default","pod-2"]').toString('base64url'),
    },
    'continue, a long token': { limit: '500', continue: 'A'.repeat(15_500) },
    'a long resourceVersion': { resourceVersion: '9'.repeat(15_500), resourceVersionMatch: 'Exact' },
  }
  for (const [what, query] of Object.entries(options)) {
    const text = new URLSearchParams(query).toString()
    await measure(`list ${what}`, text.length, () => send('GET', '/api/v1/pods', text, 'json', '', administrator))
  }
  await close()
}

async function patches(): Promise<void> {
  const { world, close, send } = await aStore()
  const data = Object.fromEntries(Array.from({ length: 5000 }, (_, number) => [`k${number}`, `${number}`]))
  const operations = (one: (number: number) => object) => {
    const list = Array.from({ length: 10_000 }, (_, number) => one(number))
    return JSON.stringify(list)
  }
  const cases = {
    'add keys': operations((number) => ({ op: 'add', path: `/data/n${number}`, value: 'x' })),
    'replace keys': operations((number) => ({ op: 'replace', path: `/data/k${number % 5000}`, value: 'y' })),
    'test the whole': operations(() => ({ op: 'test', path: '/data', value: {} })).slice(0, mostBodyBytes),
    'test the whole, equal': JSON.stringify(
      Array.from({ length: 30 }, () => ({ op: 'test', path: '/data', value: data })),
    ),
    'copy the whole': operations((number) => ({ op: 'copy', from: '/data', path: `/metadata/annotations/a${number}` })),
    'move to and fro': operations((number) => ({
      op: 'move',
      from: number % 2 ? '/b' : '/data',
      path: number % 2 ? '/data' : '/b',
    })),
    'insert at the head': operations(() => ({ op: 'add', path: '/metadata/finalizers/0', value: 'example.com/x' })),
    'a deep path': operations(() => ({ op: 'test', path: '/a'.repeat(100), value: 1 })).slice(0, mostBodyBytes),
  }
  await world.store.create('configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'large', namespace: 'default', finalizers: ['example.com/x'], annotations: { a: 'b' } },
    data,
  })
  for (const [what, body] of Object.entries(cases)) {
    await measure(`JSON patch ${what}`, body.length, () =>
      send(
        'PATCH',
        '/api/v1/namespaces/default/configmaps/large',
        'dryRun=All',
        'json-patch+json',
        body,
        administrator,
      ),
    )
  }
  await close()
}

/** As many managers and as many items of a set as an object can have. */
async function applies(): Promise<void> {
  const { close, send } = await aStore()
  const path = '/api/v1/namespaces/default/configmaps/applied'
  const apply = async (manager: string, content: object, force: boolean) => {
    const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, ...content })
    return send('PATCH', path, `fieldManager=${manager}&force=${force}`, 'apply-patch+yaml', body, administrator)
  }
  const keys = Array.from({ length: 1_480 }, (_, number) => `k${number}`)
  for (const key of keys) await apply(key, { data: { [key]: 'v' } }, true)
  const all = Object.fromEntries(keys.map((key) => [key, 'w']))
  await measure('apply, 1,480 managers, one key', 100, () => apply('k5', { data: { k5: 'w' } }, true))
  await measure('apply, 1,480 managers, conflicts', 20_000, () => apply('k5', { data: all }, false))
  await measure('apply, 1,480 managers, all keys', 20_000, () => apply('k5', { data: all }, true))
  await send('DELETE', path, '', 'json', '', administrator)
  const finalizers = (name: string) =>
    Array.from({ length: 5_400 }, (_, number) => `example.com/finalizer-${name}-${number}`)
  for (const name of ['a', 'b', 'c']) {
    const metadata = { name: 'applied', finalizers: finalizers(name) }
    await measure(`apply, 5,400 finalizers ${name}`, 200_000, () => apply('k5', { metadata }, true))
  }
  const most = { name: 'applied', finalizers: [...finalizers('d'), ...finalizers('e').slice(0, 1_600)] }
  await measure('apply, 7,000 finalizers', 250_000, () => apply('k5', { metadata: most }, true))
  await close()
}

async function requests(): Promise<void> {
  const { close, send } = await aStore()
  const pem = (bytes: Buffer) =>
    `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`
  // Sequences within sequences, and very many of them in one.
  const nested = Array.from({ length: 200 }).reduce<Buffer>((inner) => sequence(inner), Buffer.from([5, 0]))
  const wide = sequence(Buffer.concat(Array.from({ length: 200_000 }, () => Buffer.from([5, 0]))))
  const cases = {
    'no DER': pem(Buffer.alloc(400_000, 0x41)),
    'deep DER': pem(nested),
    'wide DER': pem(wide),
    'many blocks': pem(wide.subarray(0, 100)).repeat(3000),
    'no end': '-----BEGIN CERTIFICATE REQUEST-----\n'.repeat(20_000),
  }
  for (const [what, request] of Object.entries(cases)) {
    const body = JSON.stringify({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'csr-' },
      spec: {
        request: Buffer.from(request).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['client auth', 'digital signature'],
      },
    })
    for (const [who, identity] of [['an administrator', administrator] as const, ['a node', node] as const]) {
      await measure(`CSR ${what} of ${who}`, body.length, () =>
        send('POST', '/apis/certificates.k8s.io/v1/certificatesigningrequests', '', 'json', body, identity),
      )
    }
  }
  await close()
}

function sequence(content: Buffer): Buffer {
  const { length } = content
  const head = length < 128 ? [0x30, length] : [0x30, 0x83, (length >> 16) & 255, (length >> 8) & 255, length & 255]
  return Buffer.concat([Buffer.from(head), content])
}

/** The longest turn of the event loop while `act` runs: writes to the store let other work pass. */
async function measure(what: string, bytes: number, act: () => Promise<unknown>): Promise<void> {
  if (!what.includes(only)) return
  const longest: number[] = []
  let result: unknown
  for (let run = 0; run < runs && (longest.length === 0 || Math.min(...longest) > budgetMs / 2); run++) {
    let [longestMs, isOver] = [0, false]
    let start = process.cpuUsage()
    const turn = () => {
      const { user, system } = process.cpuUsage(start)
      longestMs = Math.max(longestMs, (user + system) / 1000)
      start = process.cpuUsage()
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    start = process.cpuUsage()
    result = await act()
    isOver = true
    turn()
    longest.push(longestMs)
  }
  const ms = Math.min(...longest)
  if (ms > budgetMs) slow.push(what)
  const code = result === undefined ? '' : ` ${result}`
  console.log(`${ms.toFixed(0).padStart(6)} ms ${String(bytes).padStart(8)} B ${code.padStart(4)}  ${what}`)
}

async function aStore() {
  const { store } = await openSqliteStore({ path: join(folder, `store-${++stores}.db`), clock, log })
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
  const world = { store, events: eventRecorder({ store, clock }), clock, log }
  const needs = {
    ...world,
    usage: usageBoard({ clock }),
    random: Math.random,
    parseYaml: parseYamlBody,
    services: serviceNetwork(),
    commonNameOf: commonNameOfCSR,
    version: '0',
    kinds: builtInKinds,
    access: await openAuthorizer({ store, clock, log }),
    origin: { id: 'store', acceptsCheckpoints: true },
    checkpoints: { isOpen: () => true },
    metrics: async () => ({ text: '', contentType: 'text/plain' }),
    readiness: [],
  }
  const send = async (method: string, path: string, query: string, type: string, text: string, identity: Identity) => {
    const body = Buffer.from(text)
    if (body.length > mostBodyBytes) throw new Error(`A body of ${body.length} bytes is not read at all`)
    const { answer } = await answerRequest(
      {
        method,
        path,
        query: new URLSearchParams(query),
        certificate: {
          trusted: true,
          identity,
          serialNumber: '01',
          validSinceMs: 0,
          validUntilMs: Number.POSITIVE_INFINITY,
        },
        headers: { 'content-type': `application/${type}` },
        readBody: async () => body,
        signal: new AbortController().signal,
      },
      needs,
    )
    return answer.kind === 'object' ? answer.code : answer.kind
  }
  return { world, send, close: () => store.close() }
}

function withoutStamps<T extends { readonly metadata: object }>(object: T): T {
  const {
    uid: _,
    resourceVersion: __,
    creationTimestamp: ___,
    ...metadata
  } = object.metadata as Record<string, unknown>
  return { ...object, metadata }
}
