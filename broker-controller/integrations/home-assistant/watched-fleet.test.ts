import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { backupFailureAnnotation, lastBackupAnnotation } from '../../../api/backups/volume-backup.ts'
import { aNode, aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
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
