/** What it makes is read by xz. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { storedXz } from './stored-xz.ts'

const unpacked = (packed: Buffer) => execFileSync('xz', ['--decompress', '--stdout'], { input: packed })

test('xz reads what was stored, of every length', (t) => {
  for (const length of [1, 2, 3, 4, 127, 128, 2048, 16_384, 65_536]) {
    const bytes = randomBytes(length)
    t.ok(unpacked(storedXz(bytes)).equals(bytes), `${length} bytes`)
  }
  t.throws(() => storedXz(Buffer.alloc(0)), RangeError)
  t.throws(() => storedXz(Buffer.alloc(65_537)), RangeError)
  t.end()
})

test('streams behind each other are one file', (t) => {
  t.equal(String(unpacked(Buffer.concat([storedXz(Buffer.from('one ')), storedXz(Buffer.from('two'))]))), 'one two')
  t.end()
})

test('its size depends on the number of bytes alone', (t) => {
  t.equal(storedXz(randomBytes(2048)).length, storedXz(Buffer.alloc(2048)).length)
  t.end()
})
