import { setImmediate as turn } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { ConfigMap } from '../../../api/config-map.ts'
import { systemClock as clock } from '../../../daemon/clock.ts'
import { quietLog } from '../../../daemon/testing/quiet-log.ts'
import { standStill } from '../../../daemon/testing/stand-still.ts'
import { type EtcdCluster, etcdCluster, noEtcd as skip } from '../../../test/support/etcd.ts'
import { callDeadlineMs, openEtcdClient } from './etcd-client.ts'
import { grpcCode } from './etcd-error.ts'
import { methods } from './etcd-messages.ts'
import { openEtcdStore } from './etcd-store.ts'

const anyKey = { key: Buffer.from('/'), countOnly: true }
const prefix = '/bramble/default'

test('etcd answers in time while this process stands still, however far the call has come', { skip }, async (t) => {
  const { cluster, client, place } = await aMember(t)
  const late = 600
  // The first one connects.
  for (const turns of [1, 0, 1, 2, 4]) {
    const answer = client.call(methods.range, anyKey, late)
    for (let i = 0; i < turns; i++) await turn()
    standStill(1.5 * late)
    t.same(await answer.then(({ kvs }) => kvs), [], `${turns} turns`)
  }
  const { store } = await openEtcdStore({ ...place, prefix })
  t.teardown(() => store.close())
  for (const turns of [0, 2, 4]) {
    const writing = store.create('configmaps', aMap(`turns-${turns}`))
    for (let i = 0; i < turns; i++) await turn()
    standStill(1.5 * callDeadlineMs)
    t.match(await writing, { metadata: { name: `turns-${turns}` } })
  }
  cluster.members[0]?.freeze()
  const askedMs = clock.monotonicMs()
  await t.rejects(client.call(methods.range, anyKey, late), { code: grpcCode.deadlineExceeded, refused: false })
  t.ok(clock.monotonicMs() - askedMs > 0.99 * late, 'a member that is silent has its time')
  cluster.members[0]?.thaw()
})

async function aMember(t: Test) {
  const cluster: EtcdCluster = await etcdCluster()
  t.teardown(() => cluster.remove())
  const place = { servers: cluster.urls, tls: {}, clock, log: quietLog(t) }
  const client = await openEtcdClient(place)
  t.teardown(() => client.close())
  return { cluster, client, place }
}

function aMap(name: string): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name }, data: {} }
}
