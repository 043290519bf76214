import { test } from 'tap'
import type { Summary } from '../../../api/node/stats.ts'
import type { Pod } from '../../../api/pod.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import type { Store } from '../../store/store.ts'
import { type Ask, anApi, type Document } from '../../testing/api-in-memory.ts'

const group = '/apis/metrics.k8s.io/v1beta1'
const time = '2026-01-01T00:00:00Z'
const Mi = 2 ** 20

function used(cores: number, mebibytes: number) {
  return {
    cpu: { time, usageNanoCores: cores * 1e9, usageCoreNanoSeconds: 1 },
    memory: { time, workingSetBytes: mebibytes * Mi },
  }
}

function summary(nodeName: string, ...uids: readonly string[]): Summary {
  return {
    node: { nodeName, ...used(0.5, 300) },
    pods: uids.map((uid) => ({
      podRef: { name: 'forged', namespace: 'forged', uid },
      containers: [{ name: 'server', ...used(0.25, 70) }],
    })),
  }
}

async function aFleet(t: Parameters<typeof anApi>[0]) {
  const api = await anApi(t)
  await node(api.store, 'pi-1', { zone: 'a' })
  await node(api.store, 'pi-2', { zone: 'b' })
  await pod(api.store, 'web', 'u1', 'pi-1')
  await pod(api.store, 'db', 'u2', 'pi-2')
  return { ...api, asks: () => api.usage.takeAsks(100) }
}

async function node(
  store: Store,
  name: string,
  labels: { readonly [key: string]: string },
  ready: 'True' | 'Unknown' = 'True',
) {
  const { metadata, ...rest } = aNode({ name, ready })
  await store.create('nodes', { ...rest, metadata: { name: metadata.name, labels } })
}

async function pod(store: Store, name: string, uid: string, nodeName: string) {
  const { metadata, ...rest } = aPod({ name, nodeName })
  const { resourceVersion: _, ...given } = { ...metadata, uid, labels: { app: name } }
  await store.create('pods', { ...rest, metadata: given } as Pod)
}

/** Sends a request, and advances the clock until it is answered, with or without the nodes. */
async function patiently({ ask, clock }: Awaited<ReturnType<typeof aFleet>>, ...given: Parameters<Ask>) {
  const answer = ask(...given)
  for (let i = 0; i < 60; i++) await clock.advance(100)
  return answer
}

const names = (body: Document) =>
  (body['items'] as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name)

test('a query polls each node once and returns what the nodes report', async (t) => {
  const fleet = await aFleet(t)
  const first = fleet.ask('GET', `${group}/nodes`)
  await fleet.clock.settle()
  t.same(fleet.asks(), [
    { node: 'pi-1', seconds: 60, everySeconds: 10 },
    { node: 'pi-2', seconds: 60, everySeconds: 10 },
  ])
  for (const name of ['pi-1', 'pi-2']) fleet.usage.receive(name, { time, windowSeconds: 10, summary: summary(name) })
  await fleet.clock.advance(100)
  const { body } = await first
  t.match(body, {
    kind: 'NodeMetricsList',
    apiVersion: 'metrics.k8s.io/v1beta1',
    items: [
      {
        metadata: { name: 'pi-1', labels: { zone: 'a' } },
        window: '10.000s',
        usage: { cpu: '500000000n', memory: '307200Ki' },
      },
      { metadata: { name: 'pi-2' } },
    ],
  })
  t.same(names((await fleet.ask('GET', `${group}/nodes?labelSelector=zone%3Db`)).body), ['pi-2'])
  t.match((await fleet.ask('GET', `${group}/nodes/pi-1`)).body, { kind: 'NodeMetrics', metadata: { name: 'pi-1' } })
  t.same(fleet.asks(), [], 'they still report')
  await fleet.clock.advance(31_000)
  await fleet.ask('GET', `${group}/nodes`)
  t.equal(fleet.asks().length, 2, 'and are asked to go on')
  await fleet.clock.advance(120_000)
  t.equal(fleet.usage.newest('pi-1'), undefined, 'old figures are dropped')
})

test('a query waits once for a node that does not answer, and never for one that is not Ready', async (t) => {
  const fleet = await aFleet(t)
  await node(fleet.store, 'pi-3', {}, 'Unknown')
  const first = fleet.ask('GET', `${group}/nodes`)
  await fleet.clock.settle()
  t.equal(fleet.asks().length, 2)
  fleet.usage.receive('pi-1', { time, windowSeconds: 1, summary: summary('pi-1') })
  await fleet.clock.advance(5_000)
  t.same(names((await first).body), ['pi-1'])
  t.same(names((await fleet.ask('GET', `${group}/nodes`)).body), ['pi-1'], 'at once')
})

test('usage is accepted only for pods that are bound to the reporting node', async (t) => {
  const fleet = await aFleet(t)
  fleet.usage.receive('pi-1', { time, windowSeconds: 10, summary: summary('pi-1', 'u1', 'u2', 'u9') })
  const { body } = await patiently(fleet, 'GET', `${group}/pods`)
  t.match(body, {
    kind: 'PodMetricsList',
    items: [
      {
        metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
        containers: [{ name: 'server', usage: { cpu: '250000000n', memory: '71680Ki' } }],
      },
    ],
  })
  t.same(names(body), ['web'])
  const inNamespace = `${group}/namespaces/default/pods`
  t.same(names((await fleet.ask('GET', `${inNamespace}?labelSelector=app%3Ddb`)).body), [])
  t.match((await fleet.ask('GET', `${inNamespace}/web`)).body, { kind: 'PodMetrics' })
  t.match(await fleet.ask('GET', `${inNamespace}/db`), {
    code: 404,
    body: { message: 'podmetrics.metrics.k8s.io "default/db" not found' },
  })
})

test('only administrators may read usage', async (t) => {
  const { ask } = await aFleet(t)
  const as = { user: 'system:node:pi-1', groups: ['system:nodes'] }
  for (const path of [`${group}/nodes`, `${group}/nodes/pi-1`]) {
    t.equal((await ask('GET', path, { as })).code, 403, path)
    t.equal((await ask('DELETE', path)).code, 405, path)
  }
  t.equal((await ask('GET', `${group}/pods/web`)).code, 404)
})

test('a table shows it, too', async (t) => {
  const fleet = await aFleet(t)
  fleet.usage.receive('pi-1', { time, windowSeconds: 10, summary: summary('pi-1', 'u1') })
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
  const { body } = await patiently(fleet, 'GET', `${group}/pods`, { accept })
  t.match(body, { kind: 'Table', rows: [{ cells: ['web', '250000000n', '71680Ki', '10.000s'] }] })
})

test('forgotten usage leaves nothing behind', async (t) => {
  const { usage, clock } = await aFleet(t)
  usage.receive('pi-1', { time, summary: summary('pi-1') })
  t.equal(usage.sweep(), true)
  await clock.advance(120_000)
  t.equal(usage.sweep(), false)
})

test('impossible amounts from one node do not hide the usage of the others', async (t) => {
  const fleet = await aFleet(t)
  const first = fleet.ask('GET', `${group}/nodes`)
  await fleet.clock.settle()
  const mad = { ...summary('pi-1'), node: { nodeName: 'pi-1', cpu: { time, usageNanoCores: 1e25 }, memory: { time } } }
  fleet.usage.receive('pi-1', { time, windowSeconds: 10, summary: mad })
  fleet.usage.receive('pi-2', { time, windowSeconds: 1e300, summary: summary('pi-2') })
  await fleet.clock.advance(100)
  const { body } = await first
  t.same(names(body), ['pi-2'])
  t.match(body, { items: [{ window: '0.000s', usage: { cpu: '500000000n' } }] })
})
