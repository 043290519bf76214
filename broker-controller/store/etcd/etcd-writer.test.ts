import { test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import { builtInResources } from '../../../api/resources.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import { unowned } from '../../testing/unowned.ts'
import { cachedStore } from '../cached-store.ts'
import type { AnyStoredObject } from '../changes.ts'
import { objectCache } from '../object-cache.ts'
import type { EtcdImage } from './etcd-image.ts'
import { etcdKeys } from './etcd-keys.ts'
import { methods } from './etcd-messages.ts'
import { etcdValues } from './etcd-values.ts'
import { etcdWriter } from './etcd-writer.ts'

const { url, place } = await etcdUnderTest()
const key = { resource: 'configmaps', namespace: 'default', name: 'a' }

/** A store whose memory shows what it is given, and only when it waits what etcd has. */
async function behind() {
  const client = await rawClient(url)
  const keys = etcdKeys(place().prefix)
  const values = etcdValues()
  let shown: AnyStoredObject | undefined
  let revision = 0
  let onWait = async () => {}
  const stored = async () => {
    const { header, kvs } = await client.call(methods.range, { key: keys.of(key), limit: 1 })
    const [kv] = kvs
    return { revision: header?.revision ?? 0, object: kv && values.decode(key, kv.value, kv.modRevision) }
  }
  const image: Pick<EtcdImage, 'get' | 'revision' | 'revisionOf' | 'until'> = {
    get: () => shown,
    revision: () => revision,
    revisionOf: () => Number(shown?.metadata.resourceVersion ?? 0),
    async until(isTrue) {
      const latest = await stored()
      shown = latest.object
      revision = latest.revision
      await onWait()
      return isTrue()
    },
  }
  const cache = objectCache({
    resources: builtInResources,
    clock,
    startVersion: () => 0,
    latestVersion: () => revision,
  })
  const fence = await unowned()
  const leaseVersions = { isOpen: () => true, last: () => 0, next: () => 1 }
  const writer = etcdWriter({
    ...{ client, keys, values, resources: builtInResources, cache, image, leaseVersions, fence, clock },
    close: async () => client.close(),
  })
  return {
    store: cachedStore({ resources: builtInResources, cache, writer, clock }),
    /** By another client; undefined: deleted. */
    async change(text: string | undefined) {
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...key, uid: 'of-another' }, data: { text } }
      const put = { put: { key: keys.of(key), value: values.encode(key, object) } }
      await client.call(methods.txn, { success: [text === undefined ? { deleteRange: { key: keys.of(key) } } : put] })
      return (await stored()).object
    },
    show(object: AnyStoredObject | undefined) {
      shown = object
    },
    /** Each time when memory has become what etcd has. */
    afterWaits(act: () => Promise<void>) {
      onWait = act
    },
  }
}

const aMap = (text: string, metadata = {}) => ({
  ...({ apiVersion: 'v1', kind: 'ConfigMap' } as const),
  metadata: { namespace: 'default', name: 'a', ...metadata },
  data: { text },
})

test('nothing is answered from memory alone where etcd has changed', { skip }, async (t) => {
  const { store, change, show } = await behind()
  t.teardown(() => store.close())
  const first = await change('first')
  const second = await change('second')
  const resourceVersion = second?.metadata.resourceVersion ?? ''

  show(undefined)
  const updated = await store.update('configmaps', aMap('third', { resourceVersion }))
  t.equal(updated.data?.['text'], 'third', 'no NotFound of an object that is there')
  show(first)
  await change('fourth')
  t.equal((await store.update('configmaps', aMap('first'))).data?.['text'], 'first', 'no "nothing changes"')
  const latest = await change('fifth')
  show(first)
  const version = latest?.metadata.resourceVersion ?? ''
  t.equal(
    (await store.update('configmaps', aMap('sixth', { resourceVersion: version }))).data?.['text'],
    'sixth',
    'no Conflict',
  )
  show(latest)
  await change(undefined)
  t.equal(
    (await store.create('configmaps', aMap('seventh'))).data?.['text'],
    'seventh',
    'no AlreadyExists of one that is gone',
  )
})

test('a write without a version is decided again after changes by others, five times at most', { skip }, async (t) => {
  const { store, change, show, afterWaits } = await behind()
  t.teardown(() => store.close())
  const first = await change('first')
  await change('second')
  show(first)
  t.equal((await store.update('configmaps', aMap('third'))).data?.['text'], 'third')
  let changes = 0
  afterWaits(async () => void (await change(`another-${++changes}`)))
  show(first)
  const refused = await store.update('configmaps', aMap('fourth')).catch((error: unknown) => error)
  t.ok(isApiError(refused, 'Conflict'), String(refused))
  t.equal(changes, 5)
})
