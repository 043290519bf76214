import { test } from 'tap'
import { localProvisioner, poolAnnotation } from '../../../../api/storage/pools.ts'
import { moveToAnnotation } from '../../../../api/storage/volume-move.ts'
import { volumeAnnotations } from '../../../../api/storage/volume-names.ts'
import { aNode } from '../../../../api/testing/builders.ts'
import { aStoredVolume } from '../../../testing/volume-objects.ts'
import type { PoolHolder } from '../pool-holders.ts'
import { placeObstacle, usedBytesOf, volumeObstacle } from './backup-obstacle.ts'

const ofPool = { [poolAnnotation]: 'p1', [volumeAnnotations.provisionedBy]: localProvisioner }
const aVolume = (annotations: Record<string, string> = ofPool, phase = 'Bound') =>
  aStoredVolume('pv', {
    metadata: { annotations },
    spec: { local: { path: '/one/data' }, claimRef: { namespace: 'default', name: 'data', uid: 'u' } },
    status: { phase },
  })
const volume = aVolume()

function aMachine(name: string, usedBytes?: number, ready: 'True' | 'Unknown' = 'True'): PoolHolder {
  const volumes = usedBytes === undefined ? [] : [{ uid: volume.metadata.uid, usedBytes }]
  const none = { done: new Set<string>(), refused: new Map(), pools: [], trash: [], moves: undefined, shares: [] }
  return { node: aNode({ name, ready }), report: { ...none, volumes } }
}
const source = aMachine('pi-1', 4096)

test('a bound volume of a pool that a pod has used is read; another one is refused, waited for, or left alone', async (t) => {
  const { claimRef: _, ...unclaimed } = volume.spec ?? {}
  const unbound = [aVolume(ofPool, 'Released'), { ...volume, spec: unclaimed }]
  const leaving = { ...volume, metadata: { ...volume.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
  const obstacle = (facts: Partial<Parameters<typeof volumeObstacle>[0]> = {}) =>
    volumeObstacle({ volume, isWanted: false, source, ...facts })
  t.equal(obstacle(), undefined)
  t.equal(obstacle({ isWanted: true }), undefined)
  for (const isWanted of [true, false]) {
    t.same(obstacle({ volume: aVolume({}), isWanted }), { kind: 'refuse', why: 'only volumes of a pool are backed up' })
    const moving = aVolume({ ...ofPool, [moveToAnnotation]: 'pi-2' })
    t.same(obstacle({ volume: moving, isWanted }), { kind: 'wait', why: 'the volume is being moved' })
  }
  for (const one of [...unbound, leaving]) {
    t.same(obstacle({ volume: one }), { kind: 'later' }, 'it is seen again when it changes')
    const refused = { kind: 'refuse', why: 'the volume is not bound to a claim' }
    t.same(obstacle({ volume: one, isWanted: true }), refused, 'a person asked for it')
  }
  t.same(obstacle({ source: aMachine('pi-1') }), { kind: 'later', afterMs: 900_000 }, 'no pod has used it')
  t.equal(obstacle({ source: aMachine('pi-1'), isWanted: true }), undefined)
  t.same(obstacle({ source: aMachine('pi-1', 0) }), undefined, 'it is empty, but was used')
  t.same(obstacle({ source: undefined, isWanted: true }), { kind: 'wait', why: 'no node has the pool p1' })
  t.same(obstacle({ source: undefined }), { kind: 'later', afterMs: 900_000 })
})

test('a backup is written where a node is ready for it, and two at once', async (t) => {
  const target = aMachine('pi-2')
  const place = { node: 'pi-2', path: '/backups' }
  const obstacle = (facts: Partial<Parameters<typeof placeObstacle>[0]> = {}) =>
    placeObstacle({ place, source, target, backingUp: 0, ...facts })
  t.equal(obstacle(), undefined)
  t.equal(obstacle({ backingUp: 1 }), undefined)
  t.same(obstacle({ backingUp: 2 }), { kind: 'later', afterMs: 15_000 })
  t.same(obstacle({ place: { problem: 'gone', waits: true } }), { kind: 'wait', why: 'gone' })
  t.same(obstacle({ place: { problem: 'wrong', waits: false } }), { kind: 'refuse', why: 'wrong' })
  t.same(obstacle({ target: undefined }), { kind: 'refuse', why: 'there is no node "pi-2" for backups' })
  const away = (name: string) => ({ kind: 'wait', why: `node "${name}" is not ready` })
  t.same(obstacle({ source: aMachine('pi-1', 4096, 'Unknown'), backingUp: 2 }), away('pi-1'))
  t.same(obstacle({ target: aMachine('pi-2', undefined, 'Unknown') }), away('pi-2'))
  t.same(obstacle({ target: { ...target, report: undefined } }), away('pi-2'), 'it has not reported yet')
})

test('the size of a volume is that which the node of its pool has measured', async (t) => {
  t.equal(usedBytesOf(volume, source), 4096)
  t.equal(usedBytesOf(volume, aMachine('pi-1')), undefined)
  t.equal(usedBytesOf(volume, undefined), undefined)
})
