import { test } from 'tap'
import { observePressure } from './pressure.ts'

test('a node that hovers at its threshold does not flap', async (t) => {
  const first = observePressure(new Map(), ['MemoryPressure'], 0, 300)
  t.same([...first.keys()], ['MemoryPressure'], 'shown on the first bad reading')
  const later = observePressure(first, [], 299, 300)
  t.same([...later.keys()], ['MemoryPressure'], 'a good reading does not yet clear it')
  t.equal(observePressure(later, [], 300, 300).size, 0, 'cleared after staying away')
})

test('every bad reading starts the waiting anew', async (t) => {
  const first = observePressure(new Map(), ['DiskPressure'], 0, 300)
  const again = observePressure(first, ['DiskPressure'], 200, 300)
  t.same([...observePressure(again, [], 499, 300).keys()], ['DiskPressure'])
  t.equal(observePressure(again, [], 500, 300).size, 0)
})

test('one pressure clears without the other', async (t) => {
  const both = observePressure(new Map(), ['MemoryPressure', 'DiskPressure'], 0, 300)
  t.same([...observePressure(both, ['DiskPressure'], 300, 300).keys()], ['DiskPressure'])
})
