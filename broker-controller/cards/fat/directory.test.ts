import { test } from 'tap'
import { encodeEntry, entriesOf, entryBytes, findEntry, firstEntries, placeEntry, removeEntry } from './directory.ts'

const nowMs = Date.UTC(2026, 10, 30, 5, 6, 7)
const aFile = (name: string, more: { cluster?: number; size?: number; isDirectory?: boolean } = {}) =>
  encodeEntry({ name, cluster: 5, size: 7, isDirectory: false, nowMs, ...more }, [])
const directory = (...entries: readonly Buffer[]) => Buffer.concat([...entries, Buffer.alloc(entryBytes)])
const namesIn = (bytes: Buffer) => entriesOf(bytes, true).map(({ name }) => name)
const changed = (bytes: Buffer, at: number, value: number) => {
  const copy = Buffer.from(bytes)
  copy[at] = value
  return copy
}
/** A long name of three entries, and the entry of its short name. */
const long = aFile('a-name-of-three-parts-and-a-few.txt')
const part = (index: number) => long.subarray(index * entryBytes, (index + 1) * entryBytes)

test('an entry is read as it was written', async (t) => {
  t.same(entriesOf(directory(aFile('CMDLINE.TXT', { cluster: 0x12345, size: 99 })), true), [
    {
      ...{ name: 'CMDLINE.TXT', short: 'CMDLINE TXT', isDirectory: false, cluster: 0x12345, size: 99 },
      slots: { first: 0, count: 1 },
    },
  ])
  t.match(entriesOf(directory(aFile('A', { cluster: 0x12345 })), false), [{ cluster: 0x2345 }], 'FAT16 has 16 bits')
  t.match(entriesOf(directory(aFile('A'), aFile('FOLDER', { isDirectory: true })), true), [
    { isDirectory: false },
    { isDirectory: true, slots: { first: 1, count: 1 } },
  ])
})

test('a long name is that of its entry only if all parts are there, in order, and of its short name', async (t) => {
  t.equal(long.length, 4 * entryBytes)
  const whole = 'a-name-of-three-parts-and-a-few.txt'
  const short = namesIn(directory(part(3)))[0] ?? ''
  t.not(short, whole)
  for (const [what, bytes, names] of [
    ['whole', directory(long), [whole]],
    ['after another entry', directory(aFile('A'), long), ['A', whole]],
    ['twice', directory(long, long), [whole, whole]],
    ['without its first part', directory(part(1), part(2), part(3)), [short]],
    ['without its middle part', directory(part(0), part(2), part(3)), [short]],
    ['without its last part', directory(part(0), part(1), part(3)), [short]],
    ['in another order', directory(part(1), part(0), part(2), part(3)), [short]],
    ['a part twice', directory(part(0), part(1), part(1), part(2), part(3)), [short]],
    ['a new name begins in it', directory(part(0), part(1), long), [whole]],
    ['a part of another short name', directory(part(0), changed(part(1), 13, 0), part(2), part(3)), [short]],
    [
      'the short name is another',
      directory(part(0), part(1), part(2), changed(part(3), 0, 0x42)),
      [`B${short.slice(1)}`],
    ],
    ['a freed entry in between', directory(part(0), part(1), part(2), changed(part(3), 0, 0xe5), part(3)), [short]],
    ['a freed part', directory(changed(part(0), 0, 0xe5), part(1), part(2), part(3)), [short]],
  ] as const) {
    t.same(namesIn(bytes), names, what)
  }
  t.match(entriesOf(directory(aFile('A'), long), true)[1], { slots: { first: 1, count: 4 } })
  t.match(entriesOf(directory(part(1), part(2), part(3)), true)[0], { slots: { first: 2, count: 1 } })
})

test('the label of the volume, freed entries, `.` and `..` are not entries', async (t) => {
  const label = changed(aFile('BOOTFS'), 11, 0x08)
  const bytes = directory(firstEntries(2, 0, nowMs), label, changed(aFile('FREED'), 0, 0xe5), aFile('A'))
  t.same(namesIn(bytes), ['A'])
})

test('what follows the end, or is cut off, is not read', async (t) => {
  t.same(namesIn(directory(aFile('A'), Buffer.alloc(entryBytes), aFile('B'))), ['A'])
  t.same(namesIn(aFile('A')), ['A'], 'a directory that is full')
  t.same(namesIn(Buffer.concat([aFile('A'), aFile('B').subarray(0, 31)])), ['A'])
  t.same(namesIn(Buffer.alloc(0)), [])
})

test('entries take free slots in a row, and the end moves with them', async (t) => {
  const bytes = Buffer.alloc(6 * entryBytes, 0xff)
  bytes.fill(0, 0, entryBytes)
  t.equal(placeEntry(bytes, aFile('A')), true)
  t.equal(placeEntry(bytes, long), true)
  t.same(namesIn(bytes), ['A', 'a-name-of-three-parts-and-a-few.txt'], 'old bytes after the end are not entries')
  t.equal(placeEntry(bytes, long), false, 'there is one slot left')
  const [, found] = entriesOf(bytes, true)
  if (found !== undefined) removeEntry(bytes, found)
  t.same(namesIn(bytes), ['A'])
  t.equal(placeEntry(bytes, aFile('B')), true)
  t.same(namesIn(bytes), ['A', 'B'], 'in the place of the removed ones')
})

test('a name is found in any case', async (t) => {
  const entries = entriesOf(directory(aFile('config.txt'), aFile('A')), true)
  t.equal(findEntry(entries, 'CONFIG.txt')?.name, 'config.txt')
  t.equal(findEntry(entries, 'config'), undefined)
})
