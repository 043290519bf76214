import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { backupFailureAnnotation, lastBackupAnnotation } from '../../../api/backups/volume-backup.ts'
import { rolloutKey } from '../../../api/node/agent-rollout.ts'
import { agentUpdateAnnotation } from '../../../api/node/agent-update.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { rolloutCommands } from '../../controllers/rollouts/rollout-object.ts'
import { usualRules } from '../../controllers/rollouts/rollout-rules.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { aStoredVolume } from '../../testing/volume-objects.ts'
import { deviceID, fleetDevice } from './device-ids.ts'
import { watchedFleet } from './watched-fleet.ts'

const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await setImmediate()
}

test('backups that were made or have failed are counted, and the latest one stays when its volume is gone', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const fleet = watchedFleet({ store, clock, log: quietLog(t) })
  const stop = new AbortController()
  const running = fleet.loops.map(({ run }) => run(stop.signal))
  t.teardown(async () => {
    stop.abort()
    await Promise.all(running)
  })
  await fleet.listed
  const changed: string[] = []
  fleet.onChange((id) => void changed.push(id))
  const volumeOf = (name: string, annotations: Readonly<Record<string, string>>) => {
    const { metadata: _, ...volume } = aStoredVolume(name)
    return { ...volume, metadata: { name, annotations } }
  }
  const lastOf = (time: string) => ({
    [lastBackupAnnotation]: JSON.stringify({
      ...{ name: 'n', to: 'pi-1:/b', mark: 'm', time, bytes: 1, mode: 'live' },
      full: { id: 'i', name: 'n', time, bytes: 1 },
    }),
  })
  await store.create('persistentvolumes', volumeOf('plain', {}))
  await settle()
  t.same([changed, fleet.counts().backups], [[], undefined])
  await store.create('persistentvolumes', volumeOf('db', lastOf('2026-11-29T03:00:00Z')))
  const failure = { [backupFailureAnnotation]: JSON.stringify({ time: '2026-11-29T03:00:00Z', why: 'full', count: 1 }) }
  await store.create('persistentvolumes', volumeOf('web', { ...lastOf('2026-11-28T03:00:00Z'), ...failure }))
  await settle()
  const lastMs = Date.parse('2026-11-29T03:00:00Z')
  t.same(fleet.counts().backups, { failed: 1, lastMs })
  t.same(new Set(changed), new Set([fleetDevice]))
  for (const name of ['db', 'web']) await store.delete('persistentvolumes', { namespace: '', name })
  await settle()
  t.same(fleet.counts().backups, { failed: 0, lastMs })
})

test('pods that run mark the device of their node, and are counted once', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const fleet = watchedFleet({ store, clock, log: quietLog(t) })
  const stop = new AbortController()
  const running = fleet.loops.map(({ run }) => run(stop.signal))
  t.teardown(async () => {
    stop.abort()
    await Promise.all(running)
  })
  await fleet.listed
  const changed = new Set<string>()
  fleet.onChange((id) => void changed.add(id))
  const id = deviceID('pi.2')
  await store.create('nodes', aNode({ name: 'pi.2', ready: 'True' }))
  await settle()
  t.same([...changed], [id])
  t.equal(fleet.node(id)?.metadata.name, 'pi.2')

  changed.clear()
  for (const nodeName of ['pi.2', 'elsewhere']) {
    const pod = aPod({ name: `on-${nodeName}`, nodeName })
    await store.create('pods', { ...pod, status: { ...pod.status, phase: 'Running' } })
  }
  await settle()
  t.same([...changed], [id], 'a node that is not there has no device')
  t.match(fleet.counts(), { ready: 1, total: 1, podsRunning: 2, podsWaiting: 0 })
  t.equal(fleet.podsRunning('pi.2'), 1)

  await store.delete('nodes', { namespace: '', name: 'pi.2' })
  await settle()
  t.equal(fleet.node(id), undefined)
  t.match(fleet.counts(), { ready: 0, total: 0, podsRunning: 2 })
})

test('the rollout, and the oldest version that runs, are followed', async (t) => {
  const clock = fakeClock()
  const store = memoryStore({ clock })
  const fleet = watchedFleet({ store, clock, log: quietLog(t) })
  const stop = new AbortController()
  const running = fleet.loops.map(({ run }) => run(stop.signal))
  t.teardown(async () => {
    stop.abort()
    await Promise.all(running)
  })
  await fleet.listed
  t.same([fleet.installed(), fleet.rollout(), fleet.rolloutRevision()], [undefined, undefined, undefined])
  const annotations = (sequence: number) => ({
    [agentUpdateAnnotation]: JSON.stringify({ version: `1.${sequence}.0`, sequence }),
  })
  await store.create('nodes', aNode({ name: 'pi-1', annotations: annotations(4) }))
  await store.create('nodes', aNode({ name: 'pi-2', annotations: annotations(5) }))
  await settle()
  t.same(fleet.installed(), { version: '1.4.0', sequence: 4 })
  const node = await store.get('nodes', { namespace: '', name: 'pi-1' })
  if (node === undefined) throw new Error('no node')
  await store.update('nodes', { ...node, metadata: { ...node.metadata, annotations: annotations(5) } })
  await settle()
  t.same(fleet.installed(), { version: '1.5.0', sequence: 5 })

  const target = { version: '1.6.0', sequence: 6, digest: '6'.repeat(64), floor: 1 }
  const { rollout = '' } = rolloutCommands.start({ target, releases: [target], rules: usualRules })
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: rolloutKey } as const
  const made = await store.create('configmaps', { ...map, data: { rollout: rollout ?? '' } })
  await settle()
  t.match(fleet.rollout(), { wish: { target }, status: undefined, isPausedByOperator: false })
  t.equal(fleet.rolloutRevision(), made.metadata.resourceVersion)
  const status = JSON.stringify({ phase: 'Soaking', message: 'm', rings: [], stragglers: [], stragglerCount: 0 })
  await store.update('configmaps', { ...made, data: { ...made.data, status, pause: 'by hand' } })
  await settle()
  t.match(fleet.rollout(), { state: { paused: 'by hand' }, status: { phase: 'Soaking' }, isPausedByOperator: true })
  await store.delete('configmaps', rolloutKey)
  await settle()
  t.same([fleet.rollout(), fleet.rolloutRevision()], [undefined, undefined])
})
