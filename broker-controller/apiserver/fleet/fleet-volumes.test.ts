import { test } from 'tap'
import type { TrashedVolume } from '../../../api/storage/volume-messages.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { boundedStorage } from '../../usage/storage-board.ts'
import { type FleetVolumeFacts, fleetVolumes } from './fleet-volumes.ts'

const [ssd, card, lost] = ['1', '2', '3'].map((digit) => `${digit.repeat(8)}-1111-4111-8111-111111111111`)
const gib = 2 ** 30
const hour = 3600

function withPool(name: string, id = '', more: Parameters<typeof aNode>[0] = {}) {
  const annotations = { 'bramble.dev/pools': JSON.stringify([{ id, path: '/mnt/ssd' }]) }
  return aNode({ name, labels: { [`pool.bramble.dev/${id}`]: '' }, annotations, ...more })
}

function inPool(name: string, pool = '', claim?: string) {
  const annotations = { 'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path', 'bramble.dev/pool': pool }
  return aStoredVolume(name, {
    metadata: { annotations },
    spec: {
      ...{ hostPath: undefined, local: { path: `/mnt/ssd/${name}` }, storageClassName: 'local-path' },
      ...(claim !== undefined && { claimRef: claimRefTo(claim) }),
    } as object,
    status: { phase: 'Bound' },
  })
}

function rows(facts: Partial<FleetVolumeFacts>) {
  const none = { nodes: [], volumes: [], claims: [], pods: [], reportOf: () => undefined }
  const steps = fleetVolumes({ ...none, ...facts })
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

const report = (message: object) => boundedStorage({ done: [], refused: [], ...message }).report

test('a volume has its place, its sizes, and the pods that use its claim', async (t) => {
  const pod = (name: string, phase: 'Running' | 'Succeeded') => ({
    ...aPod({
      ...{ name, namespace: 'default' },
      spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'db' } }] },
    }),
    status: { phase },
  })
  const { volumes, pools, trash } = rows({
    nodes: [withPool('pi-1', ssd), withPool('pi-2', card, { ready: 'Unknown' })],
    volumes: [inPool('pvc-db', ssd, 'db'), inPool('pvc-lost', lost, 'old')],
    claims: [aStoredClaim('db', { spec: { volumeName: 'pvc-db' }, status: { phase: 'Bound' } }), aStoredClaim('waits')],
    pods: [pod('db-0', 'Running'), pod('backup', 'Succeeded')],
    reportOf: (node) =>
      node !== 'pi-1'
        ? undefined
        : report({
            pools: [{ id: ssd, capacityBytes: 100 * gib, availableBytes: 40 * gib }],
            volumes: [{ uid: 'uid-pvc-db', usedBytes: 3 * gib }],
          }),
  })
  t.same(volumes, [
    {
      ...{ claim: 'default/db', volume: 'pvc-db', state: 'Bound', storageClass: 'local-path', pool: ssd, node: 'pi-1' },
      ...{ path: '/mnt/ssd/pvc-db', requestedBytes: gib, usedBytes: 3 * gib, pods: ['db-0'] },
    },
    {
      ...{ claim: 'default/old', volume: 'pvc-lost', state: 'Bound', storageClass: 'local-path', pool: lost },
      ...{ path: '/mnt/ssd/pvc-lost', requestedBytes: gib, pods: [] },
    },
    { claim: 'default/waits', state: 'Pending', requestedBytes: gib, pods: [] },
  ])
  t.same(pools, [
    { id: lost, state: 'Missing', volumes: 1 },
    {
      ...{ id: ssd, node: 'pi-1', path: '/mnt/ssd', state: 'Ready', volumes: 1 },
      ...{ capacityBytes: 100 * gib, availableBytes: 40 * gib, inTrash: 0 },
    },
    { id: card, node: 'pi-2', path: '/mnt/ssd', state: 'NodeNotReady', volumes: 0 },
  ])
  t.same(trash, [])
})

test('a volume outside of pools is on the node that its affinity names', async (t) => {
  const affinity = (values: readonly string[]) => ({
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In' as const, values: [...values] }] },
        ],
      },
    },
  })
  const { volumes } = rows({
    volumes: [
      aStoredVolume('a', { spec: affinity(['pi-1']) }),
      aStoredVolume('b', { spec: affinity(['pi-1', 'pi-2']) }),
      aStoredVolume('c', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    ],
  })
  t.same(
    volumes.map(({ volume, node, state, path }) => [volume, node, state, path]),
    [
      ['a', 'pi-1', 'Available', '/srv/a'],
      ['b', undefined, 'Available', '/srv/b'],
      ['c', undefined, 'Terminating', '/srv/c'],
    ],
  )
})

test('the trash is that of the pools that the node has', async (t) => {
  const entry = (uid: string, pool = '', keptSeconds = 0): TrashedVolume => ({
    ...{ uid, pool, volume: `pvc-${uid}`, folder: `default_db_pvc-${uid}`, claim: 'default/db' },
    ...{ keptSeconds, keepSeconds: 7 * 24 * hour },
  })
  const { trash } = rows({
    nodes: [withPool('pi-1', ssd), withPool('pi-2', card)],
    reportOf: (node) =>
      node === 'pi-1'
        ? report({ trash: [entry('a', ssd, 10 * hour), entry('stolen', card)] })
        : report({ trash: [entry('b', card), entry('old', card, 7 * 24 * hour)] }),
  })
  t.same(
    trash.map(({ uid, node, leftSeconds }) => [uid, node, leftSeconds / hour]),
    [
      ['b', 'pi-2', 7 * 24 - 6],
      ['a', 'pi-1', 7 * 24 - 16],
      ['old', 'pi-2', 0],
    ],
  )
})
