import { test } from 'tap'
import { deviceID, fleetDevice, isDeviceID, shortLine } from './device-ids.ts'

test('a plain name is its own ID, and every other one gets a hash', async (t) => {
  t.equal(deviceID('pi-1'), 'pi-1')
  t.match(deviceID('pi.attic.example'), /^pi-attic-example_[0-9a-f]{24}$/)
  t.match(deviceID('x'.repeat(49)), /^x{24}_[0-9a-f]{24}$/)
  t.equal(deviceID('x'.repeat(48)), 'x'.repeat(48))
  t.not(deviceID('pi.1'), deviceID('pi-1'))
  t.not(deviceID('pi.1'), deviceID(`pi-1.${'x'.repeat(200)}`))
})

test('whatever a node is called, its ID is safe in a topic', async (t) => {
  const names = ['a/b', '#', '+', 'pi/../x', '{{ states }}', '-', '', '\u0000', 'ä', 'Pi-1', '_fleet', 'é'.repeat(300)]
  for (const name of names) {
    t.match(deviceID(name), /^[a-z0-9][a-z0-9_-]{0,48}$/, JSON.stringify(name))
    t.ok(isDeviceID(deviceID(name)))
  }
  t.equal(new Set(names.map(deviceID)).size, names.length)
})

test('IDs of devices are recognized, and nothing else', async (t) => {
  t.ok(isDeviceID(fleetDevice))
  for (const text of ['', '_other', 'a/b', 'a+', 'x'.repeat(50), 'Pi']) t.notOk(isDeviceID(text), text)
})

test('a text becomes one line of a bounded length', async (t) => {
  t.equal(shortLine(' a\u0000b\n\tc\u202ed ', 20), 'a b c d')
  t.equal(shortLine('a  b \u00a0 c', 20), 'a b c')
  t.equal(shortLine('abcdef', 6), 'abcdef')
  t.equal(shortLine('abcdefg', 6), 'abcde…')
  t.equal(shortLine('😀😀😀', 2), '😀…')
})
