import { test } from 'tap'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { runLoops } from '../../../daemon/run.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { namespaceAccessController } from './namespace-access-controller.ts'

test('every namespace has a default service account and the certificates of the authorities', async (t) => {
  const store = memoryStore({ clock })
  const log = quietLog(t)
  let trusted = 'one'
  let changed = () => {}
  const authorities = {
    trusted: () => trusted,
    onChange: (listener: () => void) => {
      changed = listener
    },
  }
  const stopping = new AbortController()
  const running = runLoops([namespaceAccessController({ store, clock, log, authorities })], stopping.signal, log)
  t.teardown(async () => {
    stopping.abort()
    await running
    await store.close()
  })
  const namespace = (name: string, more = {}) =>
    ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...more } }) as const
  const account = { namespace: 'shop', name: 'default' }
  const map = { namespace: 'shop', name: 'kube-root-ca.crt' }
  const certificates = async () => (await store.get('configmaps', map))?.data
  const become = async (what: string, holds: () => Promise<boolean>) => {
    const late = Date.now() + 60_000
    while (!(await holds())) {
      if (Date.now() > late) return t.fail(what)
      await clock.sleep(10)
    }
    return t.pass(what)
  }
  await store.create(
    'namespaces',
    namespace('gone', { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['a/b'] }),
  )
  await store.create('namespaces', namespace('shop'))
  await become('a new namespace', async () => (await certificates())?.['ca.crt'] === 'one')
  t.ok(await store.get('serviceaccounts', account))
  await store.delete('serviceaccounts', account)
  await become('a deleted account', async () => (await store.get('serviceaccounts', account)) !== undefined)
  await store.delete('configmaps', map)
  await become('deleted certificates', async () => (await certificates()) !== undefined)
  const present = await store.get('configmaps', map)
  if (present === undefined) throw new Error('no map')
  await store.update('configmaps', { ...present, data: { 'ca.crt': 'forged' } })
  await become('changed certificates', async () => (await certificates())?.['ca.crt'] === 'one')
  trusted = 'two'
  changed()
  await become('another authority', async () => (await certificates())?.['ca.crt'] === 'two')
  t.equal((await store.list('serviceaccounts', 'gone')).items.length, 0, 'a namespace that is being deleted')
})
