import { test } from 'tap'
import { builtInResources as resources } from '../../../api/resources.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import { objectCache } from '../object-cache.ts'
import { etcdImage, readObjects } from './etcd-image.ts'
import { etcdKeys } from './etcd-keys.ts'
import { etcdValues } from './etcd-values.ts'

const { url, place } = await etcdUnderTest()

test('a hundred writes can wait for their changes without a warning of Node.js, and end when it is closed', {
  skip,
}, async (t) => {
  const warnings: string[] = []
  const note = ({ message }: Error) => void warnings.push(message)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const reading = { client, keys: etcdKeys(place().prefix), values: etcdValues(), resources, clock, log: quietLog(t) }
  const { revision } = await readObjects(reading)
  const cache = objectCache({ resources, clock, startVersion: () => revision, latestVersion: () => revision })
  const image = etcdImage({ ...reading, cache, revision })
  const waits = Promise.all(Array.from({ length: 100 }, () => image.until(() => false, 3_600_000)))
  t.equal(await image.until(() => image.revision() === revision, 3_600_000), true, 'what is true already')
  t.equal(await image.until(() => false, 1), false, 'its time is over')
  await new Promise((resolve) => setImmediate(resolve))
  image.close()
  t.same(new Set(await waits), new Set([false]))
  t.equal(await image.until(() => false, 3_600_000), false, 'after the end')
  t.same(warnings, [])
})
