import { type Test, test } from 'tap'
import { poolLabel } from '../../../api/storage/pools.ts'
import type { VolumesMessage } from '../../../api/storage/volume-messages.ts'
import { volumeDataFinalizer } from '../../../api/storage/volume-orders.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { topicName } from '../../../api/topics.ts'
import { runLoops } from '../../../daemon/run.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { aStoredVolume } from '../../testing/volume-objects.ts'
import { volumesOutbox } from './volumes-outbox.ts'

const [first, second] = ['1', '2'].map((digit) => `${digit.repeat(8)}-1111-4111-8111-111111111111`) as [string, string]

async function outbox(t: Test) {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const log = quietLog(t)
  const published: { readonly topic: string; readonly body: VolumesMessage | undefined }[] = []
  let isHeld = false
  const released: (() => void)[] = []
  const loop = volumesOutbox({
    ...{ store, clock, log, epoch: 'e', origin: { id: 'store-1' } },
    hold: { holds: () => isHeld, onRelease: (listener) => void released.push(listener) },
    broker: {
      publish: async (topic, body) => void published.push({ topic: topicName(topic), body: JSON.parse(body) }),
      withdraw: async (topic) => void published.push({ topic: topicName(topic), body: undefined }),
    },
  })
  const stop = new AbortController()
  const running = runLoops([loop], stop.signal, log)
  t.teardown(async () => {
    stop.abort()
    await running
  })
  return {
    ...{ store, clock },
    take: async () => {
      await clock.advance(1000)
      return published.splice(0)
    },
    hold(held: boolean) {
      isHeld = held
      for (const listener of released) listener()
    },
    async node(name: string, pool?: string) {
      const { metadata, ...node } = aNode({ name })
      const { uid: _, resourceVersion: __, ...own } = metadata
      await store.create('nodes', { ...node, metadata: { ...own, labels: pool ? { [poolLabel(pool)]: '' } : {} } })
    },
    async leaving(name: string, pool: string) {
      const { metadata: _, ...volume } = aStoredVolume(name, {
        spec: { local: { path: `/pool/${name}` }, persistentVolumeReclaimPolicy: 'Delete' },
        status: { phase: 'Released' },
      })
      await store.create('persistentvolumes', {
        ...volume,
        metadata: {
          ...{ name, uid: `uid-${name}`, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [volumeDataFinalizer] },
          annotations: { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path', 'bramble.dev/pool': pool },
        },
      })
    },
  }
}

const topic = 'bramble/v1/nodes/pi-1/volumes'
const uids = (body: VolumesMessage | undefined) => body?.orders.map(({ uid }) => uid)

test('a node is sent the orders for the volumes of its pool', async (t) => {
  const { node, leaving, take, store } = await outbox(t)
  await node('pi-1', first)
  await node('pi-2', second)
  await node('pi-3')
  t.same(await take(), [], 'none has an order')
  await leaving('b', first)
  await leaving('a', first)
  const [message, ...others] = await take()
  t.match(message, { topic, body: { epoch: 'e', version: 1, store: 'store-1' } })
  t.same([uids(message?.body), others], [['uid-a', 'uid-b'], []])
  await store.delete('persistentvolumes', { namespace: '', name: 'a' })
  await store.delete('persistentvolumes', { namespace: '', name: 'b' })
  const [empty] = await take()
  t.same([uids(empty?.body), empty?.body?.version], [[], 2])
})

test('a pool that moves to another node takes its orders along', async (t) => {
  const { node, leaving, take, store } = await outbox(t)
  await node('pi-1', first)
  await leaving('a', first)
  await take()
  await store.delete('nodes', { namespace: '', name: 'pi-1' })
  await node('pi-2', first)
  const messages = await take()
  t.match(messages, [
    { topic, body: undefined },
    { topic: 'bramble/v1/nodes/pi-2/volumes', body: { orders: [{ uid: 'uid-a' }] } },
  ])
})

test('the node that was chosen for a volume on a share is sent the order, in the store of the volume', async (t) => {
  const { node, take, store } = await outbox(t)
  await node('pi-1', first)
  await node('pi-2')
  const onShare = async (name: string, madeIn: string) => {
    const { metadata: _, ...volume } = aStoredVolume(name, {
      spec: { nfs: { server: 'nas', path: `/export/${name}` }, persistentVolumeReclaimPolicy: 'Delete' },
      status: { phase: 'Released' },
    })
    const annotations = {
      ...{ 'pv.kubernetes.io/provisioned-by': 'bramble.dev/nfs', 'bramble.dev/share-root': '/export' },
      ...{ 'bramble.dev/on-delete': 'trash', 'bramble.dev/store': madeIn, 'bramble.dev/deleting-node': 'pi-1' },
    }
    const metadata = { name, uid: `uid-${name}`, deletionTimestamp: '2026-01-01T00:00:00Z', annotations }
    await store.create('persistentvolumes', { ...volume, metadata: { ...metadata, finalizers: [volumeDataFinalizer] } })
  }
  await onShare('a', 'store-1')
  await onShare('b', 'store-2')
  const [message, ...others] = await take()
  t.match(message, { topic, body: { orders: [{ kind: 'share-trash', uid: 'uid-a', folder: 'a' }] } })
  t.same([uids(message?.body), others], [['uid-a'], []])
  const chosen = await store.get('persistentvolumes', { namespace: '', name: 'a' })
  if (chosen === undefined) return t.fail()
  const annotations = { ...chosen.metadata.annotations, 'bramble.dev/deleting-node': 'pi-2' }
  await store.update('persistentvolumes', { ...chosen, metadata: { ...chosen.metadata, annotations } })
  const messages = (await take()).map(({ topic: to, body }) => [to.split('/').at(-2), uids(body)])
  t.same(messages.sort(), [
    ['pi-1', []],
    ['pi-2', ['uid-a']],
  ])
})

test('after a restore nothing is ordered while claims may come back', async (t) => {
  const { node, leaving, take, hold } = await outbox(t)
  hold(true)
  await node('pi-1', first)
  await leaving('a', first)
  t.same(await take(), [])
  hold(false)
  t.match(await take(), [{ topic, body: { orders: [{ uid: 'uid-a' }] } }])
})

test('a message has at most 256 orders; the others follow', async (t) => {
  const { node, leaving, take, store } = await outbox(t)
  await node('pi-1', first)
  for (let index = 0; index < 260; index++) await leaving(`v${index}`, first)
  t.equal((await take()).at(-1)?.body?.orders.length, 256)
  for (let index = 0; index < 100; index++)
    await store.delete('persistentvolumes', { namespace: '', name: `v${index}` })
  t.equal((await take()).at(-1)?.body?.orders.length, 160)
})
