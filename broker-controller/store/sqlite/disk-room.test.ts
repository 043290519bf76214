import { test } from 'tap'
import { canTakeReserve, diskRefusal, diskWarning, hasRoomFor, isAdmitted } from './disk-room.ts'

const mebibyte = 2 ** 20
const room = (free: number, freePages = 0, missing?: number) => ({
  free: free * mebibyte,
  freePages: freePages * mebibyte,
  ...(missing !== undefined && { missingReserve: missing * mebibyte }),
})

test('a change needs its size twice, for the journal and the file, and what the journal may have already', (t) => {
  t.equal(hasRoomFor(room(8), mebibyte), true)
  t.equal(hasRoomFor(room(7.9), mebibyte), false)
  t.equal(hasRoomFor(room(5), 0), true)
  t.equal(hasRoomFor(room(4.9), 0), false)
  t.end()
})

test('rows that deletions left free in the file need no second time of their size', (t) => {
  t.equal(hasRoomFor(room(2.5, 6), mebibyte), true)
  t.equal(hasRoomFor(room(2.4, 6), mebibyte), false)
  t.equal(hasRoomFor(room(2.5, 5), mebibyte), false)
  t.end()
})

test('space that a reserve once had is not free', (t) => {
  t.equal(hasRoomFor(room(24, 0, 16), mebibyte), true)
  t.equal(hasRoomFor(room(23, 0, 16), mebibyte), false)
  t.end()
})

test('without room, what does not grow is written; statuses until half of a reserve that was given up is used', (t) => {
  for (const free of [0, 4]) {
    t.equal(isAdmitted('none', room(free, 0, 16), mebibyte), true)
    t.equal(isAdmitted('small', room(free), mebibyte), true)
    t.equal(isAdmitted('small', room(free, 0, 16), mebibyte), false)
    t.equal(isAdmitted('large', room(free), mebibyte), false)
  }
  t.equal(isAdmitted('small', room(8, 0, 16), mebibyte), true)
  t.equal(isAdmitted('small', room(7.9, 0, 16), mebibyte), false)
  t.equal(isAdmitted('large', room(16, 0, 16), mebibyte), false)
  t.equal(isAdmitted('large', room(8), mebibyte), true)
  t.end()
})

test('the reserve is taken where it leaves room', (t) => {
  t.equal(canTakeReserve(room(24, 0, 16)), true)
  t.equal(canTakeReserve(room(23, 0, 16)), false)
  t.equal(canTakeReserve(room(100)), false, 'it is there')
  t.end()
})

test('the warning comes before creations are refused, and both name folder, space and remedy', (t) => {
  t.equal(diskWarning(room(64), '/data'), undefined)
  t.equal(diskWarning(room(80, 0, 16), '/data'), undefined)
  t.equal(diskWarning(room(10, 54), '/data'), undefined)
  const remedy = 'Free space on it, or delete objects that are not needed: deletions are accepted'
  t.equal(
    diskWarning(room(63), '/data'),
    `the disk of /data has 63 MiB free: soon objects cannot be created or grow. ${remedy}`,
  )
  t.equal(diskWarning(room(79, 0, 16), '/data')?.includes('79 MiB free: soon'), true)
  t.equal(
    diskWarning(room(3), '/data'),
    `the disk of /data has 3.0 MiB free: objects cannot be created or grow. ${remedy}`,
  )
  t.equal(
    diskRefusal(room(3), '/data'),
    `The disk of /data has 3.0 MiB free: objects cannot be created or grow. ${remedy}`,
  )
  t.end()
})
