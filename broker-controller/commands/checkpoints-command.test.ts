import { type Test, test } from 'tap'
import { nodeIdentity } from '../../api/identity.ts'
import { aNode, aPod } from '../../api/testing/builders.ts'
import type { ApiAnswer, ApiClient } from '../../daemon/api-client.ts'
import { checkpointWindowKey } from '../store/checkpoints/checkpoint-window.ts'
import { type Ask, anApi } from '../testing/api-in-memory.ts'
import {
  acceptContent,
  approveCheckpoint,
  checkpointsCommand,
  checkpointsStatus,
  closeCheckpoints,
  refuseContent,
} from './checkpoints-command.ts'

const signal = new AbortController().signal

test('an administrator lists what nodes delivered, closes the window, and approves the pods of a node', async (t) => {
  const { client, ask, store } = await restored(t)
  t.match(
    await checkpointsStatus(client, signal),
    /are accepted, for 10m.* so far; 1 of 1 nodes are done\.\nWorkloads wait .*\n\nPods that came .*\nPOD +NODE\nshop\/web +pi-1\n.*secret shop\/hidden +pi-1 +pi-2\n.*checkpoint-1 +secrets shop\/hidden +pi-2\n$/s,
  )
  t.match(await closeCheckpoints(client, signal), /no longer accepted/)
  t.match((await store.get('configmaps', checkpointWindowKey))?.data, { state: 'closed', store: 'store-2' })
  t.match(await closeCheckpoints(client, signal), /^Nothing to close/)
  t.match(await checkpointsStatus(client, signal), /^Checkpoints are no longer accepted: closed by an administrator\./)

  const read = () => ask('GET', '/api/v1/namespaces/shop/secrets/other', { as: nodeIdentity('pi-1') })
  t.match(await read(), { code: 403 })
  t.match(await approveCheckpoint('pi-9', client, signal), /^0 pods approved/)
  t.match(await approveCheckpoint('pi-1', client, signal), /^1 pods approved/)
  t.match(await read(), { code: 200 })
})

test('an administrator accepts or refuses content that is not proven, and nothing else', async (t) => {
  const { client, ask, store } = await restored(t)
  const path = '/api/v1/namespaces/shop/secrets/made-up'
  const data = { path, shown: 'secret shop/made-up' }
  const create = () =>
    store.create('secrets', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: 'made-up',
        namespace: 'shop',
        annotations: { 'bramble.dev/learnt-from': 'pi-3', 'bramble.dev/unproven-from': 'pi-3' },
      },
    })
  await create()
  t.match(await checkpointsStatus(client, signal), /without a proof.*\nOBJECT +FROM\nsecret shop\/made-up +pi-3\n/)
  t.match(await acceptContent(data, client, signal), /^secret shop\/made-up accepted/)
  t.match((await ask('GET', path)).body, { metadata: { annotations: { 'bramble.dev/learnt-from': 'pi-3' } } })
  t.notMatch(await checkpointsStatus(client, signal), 'without a proof')
  await t.rejects(acceptContent(data, client, signal), /does not wait for a decision/)
  await t.rejects(refuseContent(data, client, signal), /does not wait for a decision/)
  await ask('DELETE', path)
  await create()
  t.match(await refuseContent(data, client, signal), /^secret shop\/made-up refused and deleted/)
  t.match(await ask('GET', path), { code: 404 })
  await t.rejects(acceptContent(data, client, signal), /Cannot read secret shop\/made-up: .*not found/)
})

test('a controller that was not restored accepts no checkpoints', async (t) => {
  const { ask } = await anApi(t)
  t.match(await checkpointsStatus(clientOf(ask), signal), /only after a restore/)
})

test('wrong arguments are rejected', async (t) => {
  for (const argv of [
    ['approve'],
    ['approve', 'pi-1', '--all'],
    ['end'],
    ['close', 'pi-1'],
    ['--what'],
    ['accept', 'pod', 'a/b'],
    ['accept', 'secret', 'a'],
  ]) {
    let error = ''
    const stderr = (text: string) => {
      error += text
    }
    const needs = { stdout: () => undefined, stderr, signal }
    t.equal(await checkpointsCommand(argv, needs), 64, argv.join(' '))
    t.match(error, /--help|Usage/)
  }
})

function clientOf(ask: Ask): Pick<ApiClient, 'get' | 'patch' | 'delete'> {
  const answer = ({ code, body }: Awaited<ReturnType<Ask>>): ApiAnswer => ({
    status: code,
    body,
    dateHeader: undefined,
  })
  return {
    get: async (path) => answer(await ask('GET', path)),
    patch: async (path, body, type = 'application/merge-patch+json') =>
      answer(await ask('PATCH', path, { body, type })),
    delete: async (path, _signal, body) => answer(await ask('DELETE', path, { body })),
  }
}

test('a store that began without nodes holds workloads for ten minutes only', async (t) => {
  const { client, store } = await restored(t)
  const statusAfter = async (openSeconds: string) => {
    const map = await store.get('configmaps', checkpointWindowKey)
    if (map === undefined) throw new Error('no state')
    await store.update('configmaps', { ...map, data: { ...map.data, nodes: '', openSeconds } })
    return await checkpointsStatus(client, signal)
  }
  t.match(await statusAfter('570'), 'done.\nWorkloads wait until checkpoints have been accepted for ten minutes.\n')
  t.notMatch(await statusAfter('600'), 'wait')
})

async function restored(t: Test) {
  const { ask, store } = await anApi(t)
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
  const node = aNode({ name: 'pi-1', annotations: { 'bramble.dev/learnt-by': 'store-2' } })
  const { resourceVersion: _, ...metadata } = node.metadata
  await store.create('nodes', { ...node, metadata })
  const data = { store: 'store-2', state: 'open', openSeconds: '600', nodes: 'pi-1' }
  await store.create('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...checkpointWindowKey }, data })
  const containers = [{ name: 'main', image: 'a:1', envFrom: [{ secretRef: { name: 'other' } }] }]
  const annotations = { 'bramble.dev/learnt-from': 'pi-1' }
  const pod = aPod({ name: 'web', nodeName: 'pi-1', namespace: 'shop', containers, metadata: { annotations } })
  const { resourceVersion: __, ...own } = pod.metadata
  await store.create('pods', { ...pod, metadata: own })
  const secret = (name: string, namespace: string, more: object) =>
    store.create('secrets', { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace, ...more } })
  const contested = { 'bramble.dev/learnt-from': 'pi-1', 'bramble.dev/contested-by': 'pi-2' }
  await secret('hidden', 'shop', { annotations: contested })
  await secret('other', 'shop', {})
  const copyOf = { 'bramble.dev/checkpoint-copy-of': 'secrets shop/hidden', 'bramble.dev/learnt-from': 'pi-2' }
  const labels = { 'bramble.dev/checkpoint-copy': 'true' }
  await secret('checkpoint-1', 'kube-system', { labels, annotations: copyOf })
  return { ask, store, client: clientOf(ask) }
}
