import { test } from 'tap'
import { compareTarget, eventType, type WatchResponse } from '../../broker-controller/store/etcd/etcd-messages.ts'
import { simulatedTime } from '../world/simulated-time.ts'
import { etcdKeyspace, type KeyChange } from './etcd-keyspace.ts'

const key = Buffer.from('/a/1')
const all = { key: Buffer.from('/a/'), rangeEnd: Buffer.from('/a0') }
const puts = (value: string, lease = '0') => [
  { put: { key, value: Buffer.from(value), ...(lease !== '0' && { lease }) } },
]

function aKeyspace() {
  const time = simulatedTime()
  const changes: KeyChange[] = []
  return { time, changes, etcd: etcdKeyspace(time, (change) => changes.push(change)) }
}

test('a transaction changes nothing if its condition does not hold, and all at one revision if it does', (t) => {
  const { etcd, changes } = aKeyspace()
  const isNew = [{ target: compareTarget.create, key, createRevision: 0 }]
  t.match(etcd.txn({ compare: isNew, success: puts('one') }, 'a'), { succeeded: true, header: { revision: 2 } })
  t.match(etcd.txn({ compare: isNew, success: puts('two') }, 'b'), { succeeded: false, header: { revision: 2 } })
  const isSame = [{ target: compareTarget.mod, key, modRevision: 2 }]
  t.match(etcd.txn({ compare: isSame, success: puts('three') }, 'b'), { succeeded: true, header: { revision: 3 } })
  t.match(etcd.range({ key }), { kvs: [{ createRevision: 2, modRevision: 3, version: 2 }] })
  t.match(etcd.range({ ...all, revision: 2 }), { kvs: [{ modRevision: 2, version: 1 }] }, 'as it was before')
  t.same(
    changes.map(({ by, value }) => [by, value?.toString()]),
    [
      ['a', 'one'],
      ['b', 'three'],
    ],
  )
  t.end()
})

test('a key ends with its lease, which a renewal makes longer', async (t) => {
  const { etcd, time, changes } = aKeyspace()
  const { id } = etcd.grant(10)
  etcd.txn({ success: puts('held', id) }, 'a')
  await time.runUntil(8_000)
  t.equal(etcd.keepAlive(id).ttl, 10)
  await time.runUntil(17_000)
  t.equal(etcd.all.length, 1)
  await time.runUntil(19_000)
  t.equal(etcd.all.length, 0)
  t.match(changes.at(-1), { value: undefined, by: undefined })
  t.equal(etcd.keepAlive(id).ttl, 0)
  t.match(etcd.txn({ success: puts('again', id) }, 'a'), { code: 5 })
})

test('a watch gets what it has missed and what follows, and reads again after a compaction', (t) => {
  const { etcd } = aKeyspace()
  const watched = (startRevision: number) => {
    const answers: WatchResponse[] = []
    const stop = etcd.watch({ ...all, startRevision }, (answer) => answers.push(answer))
    const seen = () => answers.flatMap(({ events }) => events.map(({ type, kv }) => [type, kv?.modRevision]))
    return { answers, stop, seen }
  }
  etcd.txn({ success: puts('one') }, 'a')
  etcd.txn({ success: puts('two') }, 'a')
  const first = watched(3)
  etcd.txn({ success: [{ deleteRange: { key } }] }, 'a')
  t.same(first.seen(), [
    [eventType.put, 3],
    [eventType.delete, 4],
  ])
  first.stop()
  etcd.txn({ success: puts('three') }, 'a')
  t.equal(first.seen().length, 2)
  etcd.compact()
  t.match(watched(4).answers.at(-1), { canceled: true, compactRevision: 5 })
  t.match(watched(6).answers, [{ created: true }])
  t.end()
})
