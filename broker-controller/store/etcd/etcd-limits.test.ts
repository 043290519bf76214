import { test } from 'tap'
import { isApiError } from '../../../api/api-error.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { etcdUnderTest } from '../../testing/etcd-under-test.ts'
import { StoreFullError } from '../store.ts'
import { openEtcdStore } from './etcd-store.ts'

const { place } = await etcdUnderTest('--quota-backend-bytes', String(16 * 1024 * 1024))

test('an object of 1.5 MB is stored, a larger one is refused, and so is each write when etcd has no space left', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const needs = place()
  const opened = await openEtcdStore(needs)
  const { store } = opened
  t.teardown(() => store.close())
  t.same(await opened.problems?.(), [])
  const large = await store.create('configmaps', aMap('large', 1_500_000))
  t.equal((await store.get('configmaps', { namespace: 'default', name: 'large' }))?.data?.['text']?.length, 1_500_000)
  for (const length of [1_600_000, 2_900_000]) {
    const refused = await store.create('configmaps', aMap('larger', length)).catch((error: unknown) => error)
    t.ok(isApiError(refused, 'RequestEntityTooLarge'), String(refused))
  }

  let failure: unknown
  for (let i = 0; failure === undefined && i < 100; i++) {
    failure = await store.create('configmaps', aMap(`fill-${i}`, 1_000_000)).then(
      () => undefined,
      // A slow etcd: the next object fills it, too.
      (error: unknown) => (isApiError(error, 'Timeout') ? undefined : error),
    )
  }
  t.ok(isApiError(failure, 'InsufficientStorage'), String(failure))
  t.ok(failure instanceof StoreFullError, 'a leader whose term begins tries again')
  t.match(String(failure), /no space left: compact and defragment/)
  t.match(await opened.problems?.(), [/alarm NOSPACE on member [0-9a-f]+: etcd has reached its quota/])
  t.same(await store.get('configmaps', { namespace: 'default', name: 'large' }), large, 'reads go on')
  await store.delete('configmaps', { namespace: 'default', name: 'large' })
})

function aMap(name: string, length: number): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'default', name },
    data: { text: 'x'.repeat(length) },
  }
}
