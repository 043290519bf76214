/**
 * What the limits allow that is not the body of an object: messages of nodes on every topic, parts of checkpoints, options of lists of
 * 3,000 objects, JSON patches, server-side apply and certificate requests.
 */
import { type Identity, nodesGroup } from '../../../api/identity.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { type NodeTopic, topicRules } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { metricsRegistry } from '../../../daemon/metrics-registry.ts'
import type { BudgetCase } from '../../../daemon/testing/turn-budget.ts'
import { nodeInbox } from '../../broker/inbox/node-inbox.ts'
import { defaultBrokerLimits } from '../../broker/mqtt/broker-limits.ts'
import { sessionBoard } from '../../sessions/session-board.ts'
import type { Store } from '../../store/store.ts'
import { storageBoard } from '../../usage/storage-board.ts'
import { usageBoard } from '../../usage/usage-board.ts'
import { largeValues } from '../largest-objects.ts'
import { budgetedApi, mostBodyBytes } from './budgeted-api.ts'

const node: Identity = { user: 'system:node:pi-1', groups: [nodesGroup] }

/** An empty store of its own for each group of cases. `clock`: that of the stores. */
export type InputWorld = { readonly openStore: () => Promise<Store>; readonly clock: Clock }
type Cases = AsyncGenerator<BudgetCase>

export async function* inputCases(world: InputWorld): Cases {
  for (const group of [messages, checkpoints, lists, patches, applies, requests]) yield* group(world)
}

async function* messages(given: InputWorld): Cases {
  const kinds = ['connection', 'lease', 'status', 'pod', 'events', 'stats', 'contents', 'storage'] as const
  for (const kind of kinds) {
    const topic: NodeTopic = kind === 'pod' ? { kind, node: 'pi-1', uid: 'u1' } : { kind, node: 'pi-1' }
    const bodies = largeValues(topicRules[kind].schema).map(({ field, object }) => ({ field, body: largest(object) }))
    const text = { seq: 1, digest: 'x'.repeat(defaultBrokerLimits.maxPacketBytes - 100), state: 'online', bootID: 'x' }
    for (const { field, body } of [...bodies, { field: 'a long text', body: JSON.stringify(text) }]) {
      const { world, close } = await anInputApi(given)
      await world.store.create('nodes', withoutStamps(aNode({ name: 'pi-1' })))
      const pod = aPod({ name: '0', namespace: '0', nodeName: 'pi-1' })
      const made = await world.store.create('pods', {
        ...withoutStamps(pod),
        metadata: { name: '0', namespace: '0', uid: 'u1' },
      })
      const inbox = nodeInbox({
        ...world,
        usage: usageBoard(world),
        sessions: sessionBoard(world),
        broker: { publish: async () => undefined },
        storage: storageBoard(),
        podsOf: () => [made],
        desired: { nodeOnline: () => undefined, nodeHolds: () => undefined },
        registry: metricsRegistry(),
      })
      yield {
        what: `message ${kind} ${field}`,
        bytes: body.length,
        act: async () => inbox.message({ node: 'pi-1', topic, body }),
      }
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

async function* checkpoints(given: InputWorld): Cases {
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
    let current: Awaited<ReturnType<typeof anInputApi>> | undefined
    yield {
      what: `checkpoint ${what}`,
      bytes: body.length,
      prepare: async () => {
        await current?.close()
        current = await anInputApi(given)
        await current.world.store.create('nodes', withoutStamps(aNode({ name: 'pi-1' })))
      },
      act: async () => current?.send({ method: 'POST', path: '/api/v1/nodes/pi-1/checkpoint', body, identity: node }),
    }
    await current?.close()
  }
}

async function* lists(given: InputWorld): Cases {
  const { world, close, send } = await anInputApi(given)
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
    'fields, spaces': { fieldSelector: `${' '.repeat(15_000)}x` },
    'labels, spaces': { labelSelector: `${' '.repeat(15_000)}!!` },
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
    const path = `/api/v1/pods?${text}`
    yield { what: `list ${what}`, bytes: text.length, act: () => send({ method: 'GET', path }) }
  }
  await close()
}

async function* patches(given: InputWorld): Cases {
  const { world, close, send } = await anInputApi(given)
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
    const path = '/api/v1/namespaces/default/configmaps/large?dryRun=All'
    yield {
      what: `JSON patch ${what}`,
      bytes: body.length,
      act: () => send({ method: 'PATCH', path, type: 'json-patch+json', body }),
    }
  }
  await close()
}

/** As many managers and as many items of a set as an object can have. */
async function* applies(given: InputWorld): Cases {
  const { close, send } = await anInputApi(given)
  const path = '/api/v1/namespaces/default/configmaps/applied'
  const apply = async (manager: string, content: object, force: boolean) => {
    const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, ...content })
    const target = `${path}?fieldManager=${manager}&force=${force}`
    return send({ method: 'PATCH', path: target, type: 'apply-patch+yaml', body })
  }
  const keys = Array.from({ length: 1_480 }, (_, number) => `k${number}`)
  for (const key of keys) await apply(key, { data: { [key]: 'v' } }, true)
  const all = Object.fromEntries(keys.map((key) => [key, 'w']))
  yield { what: 'apply, 1,480 managers, one key', bytes: 100, act: () => apply('k5', { data: { k5: 'w' } }, true) }
  yield { what: 'apply, 1,480 managers, conflicts', bytes: 20_000, act: () => apply('k5', { data: all }, false) }
  yield { what: 'apply, 1,480 managers, all keys', bytes: 20_000, act: () => apply('k5', { data: all }, true) }
  await send({ method: 'DELETE', path })
  const finalizers = (name: string) =>
    Array.from({ length: 5_400 }, (_, number) => `example.com/finalizer-${name}-${number}`)
  for (const name of ['a', 'b', 'c']) {
    const metadata = { name: 'applied', finalizers: finalizers(name) }
    yield { what: `apply, 5,400 finalizers ${name}`, bytes: 200_000, act: () => apply('k5', { metadata }, true) }
  }
  const most = { name: 'applied', finalizers: [...finalizers('d'), ...finalizers('e').slice(0, 1_600)] }
  yield { what: 'apply, 7,000 finalizers', bytes: 250_000, act: () => apply('k5', { metadata: most }, true) }
  await close()
}

async function* requests(given: InputWorld): Cases {
  const { close, send } = await anInputApi(given)
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
    for (const [who, identity] of [['an administrator', undefined] as const, ['a node', node] as const]) {
      const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
      yield {
        what: `CSR ${what} of ${who}`,
        bytes: body.length,
        act: () => send({ method: 'POST', path, body, ...(identity && { identity }) }),
      }
    }
  }
  await close()
}

function sequence(content: Buffer): Buffer {
  const { length } = content
  const head = length < 128 ? [0x30, length] : [0x30, 0x83, (length >> 16) & 255, (length >> 8) & 255, length & 255]
  return Buffer.concat([Buffer.from(head), content])
}

async function anInputApi({ openStore, clock }: InputWorld) {
  return budgetedApi({ store: await openStore(), clock })
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
