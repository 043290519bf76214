import { test } from 'tap'
import { cidrsOverlap, formatCidr, maskedCidr, parseCidr, sizeOfCidr } from './cidr.ts'

test('a range is read and written', async (t) => {
  for (const text of ['10.244.0.0/16', '0.0.0.0/0', '255.255.255.255/32', '192.168.128.0/17']) {
    const cidr = parseCidr(text)
    t.equal(cidr && formatCidr(cidr), text)
  }
  t.equal(sizeOfCidr({ bits: 24 }), 256)
})

test('an invalid range is rejected', async (t) => {
  for (const text of [
    '',
    '10.0.0.0',
    '10.0.0.0/33',
    '10.0.0.256/24',
    '10.0.0.1/24',
    '10.0.0/24',
    'fd00::/64',
    ' 10.0.0.0/8',
    '10.0.0.0/245',
  ]) {
    t.equal(parseCidr(text), undefined, text)
  }
})

test('two ranges overlap when one contains the first address of the other', async (t) => {
  const overlap = (one: string, other: string) => {
    const [a, b] = [parseCidr(one), parseCidr(other)]
    if (a === undefined || b === undefined) throw new Error(`${one} or ${other} is not a CIDR`)
    t.equal(cidrsOverlap(a, b), cidrsOverlap(b, a), 'in either order')
    return cidrsOverlap(a, b)
  }
  t.equal(overlap('10.244.0.0/16', '10.244.0.0/24'), true, 'the first range in it')
  t.equal(overlap('10.244.0.0/16', '10.244.255.0/24'), true, 'the last range in it')
  t.equal(overlap('10.244.0.0/16', '10.245.0.0/24'), false, 'the range after it')
  t.equal(overlap('10.244.0.0/16', '10.243.255.0/24'), false, 'the range before it')
  t.equal(overlap('10.244.3.0/24', '10.244.3.0/24'), true, 'itself')
  t.equal(overlap('10.244.3.0/24', '10.244.4.0/24'), false, 'its neighbour')
})

test('an address with its mask is in a range', async (t) => {
  const range = (text: string) => {
    const masked = maskedCidr(text)
    return masked && formatCidr(masked)
  }
  t.equal(range('192.168.1.7/24'), '192.168.1.0/24')
  t.equal(range('10.255.255.255/0'), '0.0.0.0/0')
  t.equal(range('10.0.0.1/32'), '10.0.0.1/32')
  for (const text of ['', '10.0.0.1', '10.0.0.1/33', '10.0.0.1/', '10.0.0.1/x', 'fd00::1/64'])
    t.equal(range(text), undefined, text)
})
