import { test } from 'tap'
import { volumeAnnotations } from '../../../api/storage/volume-names.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { aClusterWithVolumes, onNodes } from '../../testing/pods-with-claims.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { reservationState } from './reservation-state.ts'
import type { KnownClaim, KnownVolume, VolumeChoice } from './volume-cache.ts'

const { bindCompleted, selectedNode } = volumeAnnotations
const claim = aStoredClaim('data')
const volume = aStoredVolume('disk')

/** The state of a pod on node `a`, with these objects in the store. */
const stateWith = (
  volumes: VolumeChoice,
  stored: { claim?: KnownClaim; volume?: KnownVolume },
  more: { nowMs?: number; nodeName?: string; written?: number } = {},
) => {
  const { nowMs = 0, nodeName = 'a', written = 1 } = more
  const known = aClusterWithVolumes({
    claims: stored.claim === undefined ? [] : [stored.claim],
    volumes: stored.volume === undefined ? [] : [stored.volume],
  })
  const versions = new Map([
    ['uid-data', written],
    ['uid-disk', written],
  ])
  const reservation = { key: 'default/web', pod: aPod({ name: 'web' }), nodeName, volumes, versions, beganMs: 0 }
  const found = reservationState(
    { ...reservation, untilMs: 600_000 },
    known.volumes.stored,
    known.node(nodeName),
    nowMs,
  )
  return found.state === 'failed' ? found.message : found.state
}

const bound = (annotations: { readonly [name: string]: string } = {}): KnownClaim =>
  aStoredClaim('data', {
    metadata: { annotations: { [bindCompleted]: 'yes', ...annotations } },
    spec: { volumeName: 'disk' },
  })
const taken = aStoredVolume('disk', { spec: { claimRef: claimRefTo('data') } })

test('a chosen volume is awaited until both sides are bound', async (t) => {
  const binding = { bindings: [{ claim, volume }], provisions: [] }
  t.equal(stateWith(binding, { claim, volume: taken }), 'waiting')
  t.equal(stateWith(binding, { claim: bound(), volume: taken }), 'ready')
  t.equal(stateWith(binding, { claim: bound(), volume: taken }, { nowMs: 600_000 }), 'ready', 'just in time')
  const late = 'binding volumes: context deadline exceeded'
  t.equal(stateWith(binding, { claim, volume: taken }, { nowMs: 600_000 }), late)
  t.equal(stateWith(binding, { claim, volume }), 'binding volumes: ClaimRef got reset for pv "disk"')
  t.equal(stateWith(binding, { claim, volume }, { written: 2 }), 'waiting', 'the watch is behind the write')
  const gone = 'binding volumes: failed to check binding: could not find'
  t.equal(stateWith(binding, { claim }), `${gone} v1.PersistentVolume "disk"`)
  t.equal(stateWith(binding, { volume: taken }), `${gone} v1.PersistentVolumeClaim "default/data"`)
  const other = aStoredClaim('data', { metadata: { uid: 'another' } })
  t.equal(stateWith(binding, { claim: other, volume: taken }), `${gone} v1.PersistentVolumeClaim "default/data"`)
  const elsewhere = aStoredVolume('disk', { spec: { claimRef: claimRefTo('data'), ...onNodes('b') } })
  const unreachable = `binding volumes: pv "disk" node affinity doesn't match node "a": no matching NodeSelectorTerms`
  t.equal(stateWith(binding, { claim: bound(), volume: elsewhere }), unreachable)
  const noNode = 'binding volumes: failed to get node "c": node "c" not found'
  t.equal(stateWith(binding, { claim: bound(), volume: taken }, { nodeName: 'c' }), noNode)
})

test('a volume that is being made is awaited while its node stands in the claim', async (t) => {
  const making = { bindings: [], provisions: [claim] }
  const selected = (node: string) => aStoredClaim('data', { metadata: { annotations: { [selectedNode]: node } } })
  t.equal(stateWith(making, { claim: selected('a') }), 'waiting')
  t.equal(stateWith(making, { claim: bound({ [selectedNode]: 'a' }) }), 'waiting', 'its volume is not delivered yet')
  t.equal(stateWith(making, { claim: bound({ [selectedNode]: 'a' }), volume: taken }), 'ready')
  t.equal(stateWith(making, { claim: selected('b') }), 'binding volumes: provisioning failed for PVC "data"')
  t.equal(stateWith(making, { claim: bound() }), 'binding volumes: provisioning failed for PVC "data"')
  t.equal(stateWith(making, { claim }), 'binding volumes: selectedNode annotation reset for PVC "data"')
  t.equal(stateWith(making, { claim }, { written: 2 }), 'waiting', 'the watch is behind the write')
  const missing =
    'binding volumes: failed to check provisioning pvc: could not find v1.PersistentVolumeClaim "default/data"'
  t.equal(stateWith(making, {}), missing)
  const elsewhere = aStoredVolume('disk', { spec: { claimRef: claimRefTo('data'), ...onNodes('b') } })
  const unreachable = `binding volumes: pv "disk" node affinity doesn't match node "a": no matching NodeSelectorTerms`
  t.equal(stateWith(making, { claim: bound({ [selectedNode]: 'a' }), volume: elsewhere }), unreachable)
})
