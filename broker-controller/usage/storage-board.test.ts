import { test } from 'tap'
import { storageBoard } from './storage-board.ts'

const id = '11111111-1111-4111-8111-111111111111'

test('the last report of a node counts, until the node is deleted', async (t) => {
  const board = storageBoard()
  const reported: string[] = []
  board.onReport((node) => reported.push(node))
  t.equal(board.reportOf('pi-1'), undefined)
  board.receive('pi-1', { done: ['a'], refused: [] })
  t.same(board.receive('pi-1', { done: ['b'], refused: [{ uid: 'c', reason: 'it is mounted' }] }), [])
  t.same([...(board.reportOf('pi-1')?.done ?? [])], ['b'])
  t.equal(board.reportOf('pi-1')?.refused.get('c'), 'it is mounted')
  t.same(reported, ['pi-1', 'pi-1'])
  board.forget('pi-1')
  t.equal(board.reportOf('pi-1'), undefined)
})

test('a report is bounded, and sizes are sizes', async (t) => {
  const board = storageBoard()
  const many = Array.from({ length: 5000 }, (_, index) => String(index))
  const pool = { id, capacityBytes: 5, availableBytes: 1 }
  const cut = board.receive('pi-1', {
    done: many,
    refused: many.map((uid) => ({ uid, reason: 'x'.repeat(5000) })),
    pools: [pool, { ...pool, id: '../..' }, { ...pool, availableBytes: -1 }, { ...pool, capacityBytes: 2 ** 63 }],
    volumes: [...many.map((uid) => ({ uid, usedBytes: 1 })), { uid: 'late', usedBytes: 1 }],
  })
  t.same(cut, ['done', 'refused', 'volumes'])
  const report = board.reportOf('pi-1')
  t.same([report?.done.size, report?.refused.size, report?.volumes.length], [256, 256, 1024])
  t.equal(report?.refused.get('0')?.length, 1024)
  t.same(report?.pools, [pool])
  board.receive('pi-1', {
    done: [],
    refused: [],
    volumes: [
      { uid: 'a', usedBytes: 2 ** 60 },
      { uid: 'b', usedBytes: 0.5 },
    ],
  })
  t.same(board.reportOf('pi-1')?.volumes, [])
})

test('entries of the trash are bounded, and name a folder in the pool', async (t) => {
  const board = storageBoard()
  const entry = { uid: 'u', pool: id, volume: 'pvc-1', folder: 'default_a_pvc-1', keptSeconds: 1, keepSeconds: 2 }
  const reported = (...trash: readonly (typeof entry)[]) => {
    const cut = board.receive('pi-1', { done: [], refused: [], trash })
    return [cut, board.reportOf('pi-1')?.trash.length]
  }
  t.same(reported(entry, { ...entry, folder: '' }), [[], 2])
  t.same(reported(...Array.from({ length: 200 }, () => entry)), [['trash'], 128])
  for (const wrong of [
    { uid: '../u' },
    { pool: 'p' },
    { folder: '../etc' },
    { folder: '..' },
    { folder: '.bramble' },
    { folder: 'x'.repeat(256) },
    { volume: 'x'.repeat(254) },
    { claim: 'x'.repeat(508) },
    { storageClass: 'x'.repeat(254) },
    { capacity: 'x'.repeat(65) },
    { usedBytes: -1 },
    { keptSeconds: 0.5 },
    { keepSeconds: 2 ** 60 },
  ])
    t.same(reported({ ...entry, ...wrong }), [[], 0], JSON.stringify(wrong))
})
