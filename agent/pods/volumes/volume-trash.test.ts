import { test } from 'tap'
import { nextRemoval, otherVolume } from './volume-trash.ts'

const day = 24 * 3600_000
const gib = 2 ** 30
const room = (capacityBytes: number, availableBytes: number) => ({ capacityBytes, availableBytes })

test('what is in the trash is removed after seven days, the oldest first', async (t) => {
  const entries = [
    { id: 'new', keptMs: day, keepMs: 7 * day },
    { id: 'old', keptMs: 7 * day, keepMs: 7 * day },
    { id: 'older', keptMs: 8 * day, keepMs: 7 * day },
  ]
  t.equal(nextRemoval(entries, undefined), 'older')
  t.equal(nextRemoval(entries.slice(0, 2), undefined), 'old')
  t.equal(nextRemoval(entries.slice(0, 1), undefined), undefined)
  t.equal(nextRemoval([], room(100 * gib, 0)), undefined)
})

test('a full pool is emptied before: below 5 % or 1 GiB, of a small disk below a fifth', async (t) => {
  const entries = [{ id: 'a', keptMs: 0, keepMs: 7 * day }]
  const removed = (capacity: number, available: number) => nextRemoval(entries, room(capacity, available)) === 'a'
  t.same([removed(100 * gib, 5 * gib - 1), removed(100 * gib, 5 * gib)], [true, false])
  t.same([removed(10 * gib, gib - 1), removed(10 * gib, gib)], [true, false])
  t.same([removed(gib, gib / 5 - 1), removed(gib, gib / 5)], [true, false])
})

test('a folder is that of an order if its record names the folder and the claim', async (t) => {
  const order = { kind: 'trash', volume: 'v', uid: 'u', pool: 'p', folder: 'f', claim: 'default/c', claimUID: 'c1' }
  const record = { uid: 'u', folder: 'f', claim: 'default/c', claimUID: 'c1' }
  const { claim: _, claimUID: __, ...unreserved } = order
  t.equal(otherVolume(record, order), undefined)
  t.match(otherVolume({ ...record, claimUID: 'c2' }, order), /^a pod of the claim default\/c has used it since$/)
  t.match(otherVolume({ ...record, folder: 'g' }, order), /^the folder of the volume is g$/)
  t.equal(otherVolume({ uid: 'u', claim: 'default/c' }, order), undefined, 'an earlier version wrote no uid')
  t.match(otherVolume({ uid: 'u', claim: 'default/d' }, order), /default\/d has used it/)
  t.equal(otherVolume(record, unreserved), undefined)
})

test('each volume is kept for the time of its class; a full pool is emptied oldest first', async (t) => {
  const entries = [
    { id: 'long', keptMs: 10 * day, keepMs: 30 * day },
    { id: 'short', keptMs: day, keepMs: day },
  ]
  t.equal(nextRemoval(entries, undefined), 'short')
  t.equal(nextRemoval(entries.slice(0, 1), undefined), undefined)
  t.equal(nextRemoval([{ id: 'none', keptMs: 0, keepMs: 0 }], undefined), 'none')
  const kept = entries.map((entry) => ({ ...entry, keepMs: 30 * day }))
  t.equal(nextRemoval(kept, room(100 * gib, 0)), 'long')
})
