import { test } from 'tap'
import { describeHardware, sameMachine } from './hardware-identity.ts'

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
