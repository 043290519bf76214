import { test } from 'tap'
import type { PersistentVolume } from './persistent-volume.ts'
import { moveAnnotation, moveOf, moveOrders, type VolumeMove } from './volume-move.ts'
import { deletionOrder } from './volume-orders.ts'

const move: VolumeMove = {
  ...{ id: '0123abcd', phase: 'copy', round: 1, bytes: 10 },
  from: { pool: 'pool-a', folder: 'default_db_pv' },
  to: { pool: 'pool-b', folder: 'default_db_pv-0123abcd', node: 'pi-2' },
}
const volumeWith = (written: string): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pv', uid: 'uid-pv', annotations: { [moveAnnotation]: written } },
  spec: {
    ...{ capacity: { storage: '1Gi' }, storageClassName: 'local-path' },
    claimRef: { namespace: 'default', name: 'db', uid: 'uid-claim' },
  },
})
const ordersIn = (phase: VolumeMove['phase']) => moveOrders(volumeWith(JSON.stringify({ ...move, phase })))

test('each phase has its orders for the pools at both ends', async (t) => {
  const kinds = (phase: VolumeMove['phase']) => ordersIn(phase).map(({ kind, pool }) => `${kind} ${pool}`)
  t.same(kinds('copy'), ['send pool-a', 'receive pool-b'])
  t.same(kinds('hold'), ['hold pool-a', 'receive pool-b'])
  t.same(kinds('delta'), ['hold pool-a', 'receive pool-b'])
  t.same(kinds('place'), ['keep pool-b'], 'the old copy stays until the new one has its place')
  t.same(kinds('clean'), ['trash pool-a'])
  t.same(kinds('rollback'), ['release pool-a', 'remove pool-b'])
  t.same(ordersIn('copy'), [
    {
      ...{ kind: 'send', volume: 'pv', uid: 'uid-pv', pool: 'pool-a', folder: 'default_db_pv' },
      ...{ claim: 'default/db', claimUID: 'uid-claim', move: { id: '0123abcd', round: 1, bytes: 10 } },
    },
    {
      ...{ kind: 'receive', volume: 'pv', uid: 'uid-pv', pool: 'pool-b', folder: 'default_db_pv-0123abcd' },
      ...{ claim: 'default/db', claimUID: 'uid-claim', move: { id: '0123abcd', round: 1, bytes: 10 } },
    },
  ])
})

test('the old copy is in the trash by a name of its own', async (t) => {
  t.same(ordersIn('clean'), [
    {
      ...{ kind: 'trash', volume: 'pv-0123abcd', uid: 'uid-pv-0123abcd', pool: 'pool-a', folder: 'default_db_pv' },
      ...{ claim: 'default/db', claimUID: 'uid-claim', capacity: '1Gi', storageClass: 'local-path' },
    },
  ])
})

test('what is not a move is ignored', async (t) => {
  const whole = JSON.stringify(move)
  t.same(moveOf(volumeWith(whole)), move)
  const wrong = [
    ...['', '{', '{}', whole.padEnd(3_000)],
    JSON.stringify({ ...move, id: '../../etc' }),
    JSON.stringify({ ...move, phase: 'erase' }),
    JSON.stringify({ ...move, round: '1' }),
  ]
  for (const text of wrong) t.same([moveOf(volumeWith(text)), moveOrders(volumeWith(text))], [undefined, []], text)
})

test('a volume that is being moved is not deleted meanwhile', async (t) => {
  const leaving = (annotations: Record<string, string>): PersistentVolume => ({
    ...volumeWith(''),
    metadata: {
      ...{ name: 'pv', uid: 'uid-pv', deletionTimestamp: '2026-01-01T00:00:00Z' },
      finalizers: ['bramble.dev/volume-data'],
      annotations: {
        'pv.kubernetes.io/provisioned-by': 'bramble.dev/local-path',
        'bramble.dev/pool': 'pool-a',
        ...annotations,
      },
    },
    spec: { local: { path: '/pool/default_db_pv' }, persistentVolumeReclaimPolicy: 'Delete' },
    status: { phase: 'Released' },
  })
  t.match(deletionOrder(leaving({})), { kind: 'trash' })
  t.equal(deletionOrder(leaving({ [moveAnnotation]: JSON.stringify(move) })), undefined)
})
