import { test } from 'tap'
import type { ImageReference } from '../../runtime/runtime.ts'
import { sandboxImage } from '../images/sandbox-image.ts'
import {
  bytesToFree,
  type ImageRecords,
  isOnlyHere,
  outlivedImages,
  remember,
  removableImages,
  usedPercent,
} from './unused-images.ts'

const image = (name: string): ImageReference => ({
  id: name,
  digests: [`${name}@sha256:1`],
  tags: [`${name}:1`],
  sizeBytes: 1,
})
const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(image) as [ImageReference, ImageReference, ImageReference, ImageReference]
const policy = { highPercent: 85, lowPercent: 80, minAgeMs: 120_000, maxAgeMs: 0 }
const never = Number.NEGATIVE_INFINITY

function seen(
  records: ImageRecords,
  nowMs: number,
  images: readonly ImageReference[],
  used: readonly ImageReference[] = [],
): ImageRecords {
  return remember(records, images, new Set(used.map(({ id }) => id)), {
    nowMs,
    atMs: records.size === 0 ? never : nowMs,
  })
}

test('the longest unused goes first, of equals the first seen, those in use never', async (t) => {
  let records = seen(new Map(), 0, [a, b], [a])
  records = seen(records, 10_000, [a, b, c, d], [d])
  records = seen(records, 20_000, [a, b, c, d], [b])
  const order = removableImages(records, new Set(['b']), 0, 30_000)
  t.same(
    order.map(({ image: { id } }) => id),
    ['c', 'a', 'd'],
  )
})

test('one that came lately is about to be used: it stays for the least age', async (t) => {
  const records = seen(seen(new Map(), 0, [a]), 10_000, [a, b])
  const ids = (nowMs: number) => removableImages(records, new Set(), 120_000, nowMs).map(({ image: { id } }) => id)
  t.same(ids(11_000), ['a'], 'what was here before us has no age')
  t.same(ids(129_999), ['a'])
  t.same(ids(130_000), ['a', 'b'])
})

test('the image of the sandboxes is never removed, and records of removed images are dropped', async (t) => {
  const pause = { ...image('p'), tags: ['other:1', sandboxImage] }
  const records = seen(seen(new Map(), 0, [a, pause]), 1, [pause])
  t.same(removableImages(records, new Set(), 0, 1_000_000), [])
  t.equal(records.size, 1)
})

test('images unused for long go by their age, once we have watched as long ourselves', async (t) => {
  const records = seen(seen(new Map(), 0, [a, b]), 50_000, [a, b], [b])
  const outlived = (nowMs: number, maxAgeMs = 60_000) =>
    outlivedImages(removableImages(records, new Set(), 0, nowMs), maxAgeMs, { nowMs, sinceMs: 0 }).map(
      ({ image: { id } }) => id,
    )
  t.same(outlived(60_000), [])
  t.same(outlived(60_001), ['a'])
  t.same(outlived(110_001), ['a', 'b'])
  t.same(outlived(110_000), ['a'])
  t.same(outlived(110_001, 0), [])
  const late = { nowMs: 110_001, sinceMs: 50_002 }
  t.same(outlivedImages([...records.values()], 60_000, late), [], 'not observed for as long')
})

test('from the high mark on, it is freed down to the low one', async (t) => {
  const disk = (availableBytes: number) => ({ availableBytes, capacityBytes: 1000 })
  t.equal(usedPercent(disk(155)), 85)
  t.equal(bytesToFree(disk(151), policy), 49)
  t.equal(bytesToFree(disk(160), policy), 0, '84 %')
  t.equal(bytesToFree(disk(0), policy), 200)
  t.equal(bytesToFree(disk(0), { ...policy, highPercent: 100 }), 0, 'switched off')
  t.equal(usedPercent({ availableBytes: 20, capacityBytes: 10 }), 0)
})

test('images that no registry has are last, however long they were unused', async (t) => {
  const imported = { ...a, digests: [] }
  t.same([imported, b, { ...c, digests: [], tags: [] }].map(isOnlyHere), [true, false, false])
  t.notOk(isOnlyHere({ ...a, digests: [], tags: ['bramble.dev/partial:1-2'] }), 'the agent made it')
  t.ok(isOnlyHere({ ...a, digests: [], tags: ['bramble.dev/partial:1-2', 'mine:1'] }))
  const records = seen(seen(new Map(), 0, [imported, b]), 10_000, [imported, b], [b])
  const order = removableImages(records, new Set(), 0, 20_000)
  t.same(
    order.map(({ image: { id } }) => id),
    ['b', 'a'],
  )
})
