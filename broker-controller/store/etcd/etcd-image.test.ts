import { type Test, test } from 'tap'
import { builtInResources as resources } from '../../../api/resources.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { type EtcdUnderTest, etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import { objectCache } from '../object-cache.ts'
import { etcdImage, readObjects } from './etcd-image.ts'
import { etcdKeys } from './etcd-keys.ts'
import { methods } from './etcd-messages.ts'
import { etcdValues } from './etcd-values.ts'
import { lateLeaseVersions } from './lease-versions.ts'
import { storedLeases } from './stored-leases.ts'

const etcd = await etcdUnderTest()
const smallEtcd = await etcdUnderTest('--quota-backend-bytes', String(16 * 1024 * 1024))

test('a hundred writes can wait for their changes without a warning of Node.js, and end when it is closed', {
  skip,
}, async (t) => {
  const warnings: string[] = []
  const note = ({ message }: Error) => void warnings.push(message)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const { revision, open } = await anEmptyPrefix(t)
  const { image } = open()
  const waits = Promise.all(Array.from({ length: 100 }, () => image.until(() => false, 3_600_000)))
  t.equal(await image.until(() => image.revision() === revision, 3_600_000), true, 'what is true already')
  t.equal(await image.until(() => false, 1), false, 'its time is over')
  await new Promise((resolve) => setImmediate(resolve))
  image.close()
  t.same(new Set(await waits), new Set([false]))
  t.equal(await image.until(() => false, 3_600_000), false, 'after the end')
  t.same(warnings, [])
})

test('a reader that waits for the latest leaves no change out while its watch is catching up', { skip }, async (t) => {
  const { client, keys, values, open } = await anEmptyPrefix(t)
  const count = 300
  for (let i = 0; i < count; i++) {
    const key = { resource: 'configmaps', namespace: 'default', name: `m${i}` }
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...key, uid: `${i}`, resourceVersion: '' } }
    const put = { key: keys.of(key), value: values.encode(key, object) }
    await client.call(methods.txn, { compare: [], success: [{ put }] })
  }
  const { image, cache } = open()
  t.equal(await image.latest(30_000), true)
  t.equal(cache.list('configmaps').length, count)
  image.close()
})

test('changes of another store in the same etcd do not keep a reader waiting', { skip }, async (t) => {
  const { client, open } = await anEmptyPrefix(t)
  const { image } = open()
  const put = { key: etcdKeys(etcd.place().prefix).origin, value: Buffer.from('another') }
  const { header } = await client.call(methods.txn, { compare: [], success: [{ put }] })
  t.equal(await image.latest(30_000), true)
  t.ok(image.revision() >= (header?.revision ?? Number.NaN))
  image.close()
})

test('a reader has the latest although another store has filled etcd, and no mark can be written', {
  skip,
}, async (t) => {
  const { client, keys, values, open } = await anEmptyPrefix(t, smallEtcd)
  const key = { resource: 'configmaps', namespace: 'default', name: 'm' }
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...key, uid: 'm', resourceVersion: '' } }
  const put = { key: keys.of(key), value: values.encode(key, object) }
  await client.call(methods.txn, { compare: [], success: [{ put }] })
  const { image, cache } = open()
  t.equal(await image.latest(30_000), true)
  const others = etcdKeys(smallEtcd.place().prefix)
  const fill = async () => {
    for (let i = 0; ; i++) {
      const large = { key: others.of({ ...key, name: `${i}` }), value: Buffer.alloc(1_000_000) }
      await client.call(methods.txn, { compare: [], success: [{ put: large }] })
    }
  }
  await t.rejects(fill(), /database space exceeded/)
  t.equal(await image.latest(30_000), true)
  await client.call(methods.txn, { compare: [], success: [{ deleteRange: { key: keys.of(key) } }] })
  await client.call(methods.txn, {
    compare: [],
    success: [{ deleteRange: { key: others.of({ ...key, name: '0' }) } }],
  })
  t.equal(await image.latest(30_000), true)
  t.same(cache.list('configmaps'), [])
  image.close()
})

/** `open`: an image as of now, whatever is written before it is called. */
async function anEmptyPrefix(t: Test, { url, place }: EtcdUnderTest = etcd) {
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const { clock, prefix } = place()
  const reading = { client, keys: etcdKeys(prefix), values: etcdValues(), resources, clock, log: quietLog(t) }
  const { revision } = await readObjects(reading)
  const open = () => {
    const cache = objectCache({ resources, clock, startVersion: () => revision, latestVersion: () => revision })
    const leases = storedLeases(cache, lateLeaseVersions())
    return { cache, image: etcdImage({ ...reading, cache, leases, revision }) }
  }
  return { ...reading, revision, open }
}
