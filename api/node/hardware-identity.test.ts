import { test } from 'tap'
import { describeHardware, isCopiedCard, sameMachine } from './hardware-identity.ts'

test('two boards with clones of one card are two machines', async (t) => {
  const card = { machineID: '0123456789abcdef0123456789abcdef' }
  t.equal(
    sameMachine({ ...card, boardSerial: '10000000aaaaaaaa' }, { ...card, boardSerial: '10000000bbbbbbbb' }),
    false,
  )
  t.equal(sameMachine({ ...card, systemUUID: 'A' }, { ...card, systemUUID: 'B' }), false)
})

test('a board with a new card is the same machine', async (t) => {
  t.equal(
    sameMachine(
      { boardSerial: '10000000AAAAAAAA', machineID: 'x' },
      { boardSerial: '10000000aaaaaaaa', machineID: 'y' },
    ),
    true,
  )
})

test('without serial numbers the first mark both have decides', async (t) => {
  t.equal(sameMachine({ boardSerial: 's', machineID: 'x' }, { machineID: 'x' }), true)
  t.equal(sameMachine({ boardSerial: 's' }, { machineID: 'x' }), false, 'nothing in common proves nothing')
  t.equal(sameMachine({}, {}), false)
})

test('a machine is described by all its marks', async (t) => {
  t.equal(
    describeHardware({ model: 'Raspberry Pi Zero 2 W Rev 1.0', boardSerial: '00000000deadbeef', machineID: 'x' }),
    'Raspberry Pi Zero 2 W Rev 1.0, board serial 00000000deadbeef, machine-id x',
  )
  t.equal(describeHardware({}), 'a machine that shows no identity')
})

test('a card is copied when two machines show its machine-id', async (t) => {
  const [one, other] = [
    { boardSerial: 'a', machineID: 'x' },
    { boardSerial: 'b', machineID: 'x' },
  ]
  t.equal(isCopiedCard(one, other), true)
  t.equal(isCopiedCard(one, one), false)
  t.equal(isCopiedCard(one, { ...other, machineID: 'y' }), false)
  t.equal(isCopiedCard({ boardSerial: 'a' }, { boardSerial: 'b' }), false, 'neither shows one')
})

test('a machine is described by all its marks, each of 64 characters at most', async (t) => {
  const [long, most] = ['x'.repeat(65), 'y'.repeat(64)]
  t.equal(
    describeHardware({ model: 'Pi 5', boardSerial: 'a', systemUUID: 'b', machineID: 'c' }),
    'Pi 5, board serial a, system UUID b, machine-id c',
  )
  t.equal(describeHardware({ model: long, machineID: most }), `${'x'.repeat(64)}..., machine-id ${most}`)
  t.equal(describeHardware({ model: '', boardSerial: '' }), 'a machine that shows no identity')
})
