import { test } from 'tap'
import { formatCidr, parseCidr, sizeOfCidr } from './cidr.ts'

test('a range is read and written', async (t) => {
  for (const text of ['10.244.0.0/16', '0.0.0.0/0', '255.255.255.255/32', '192.168.128.0/17']) {
    const cidr = parseCidr(text)
    t.equal(cidr && formatCidr(cidr), text)
  }
  t.equal(sizeOfCidr({ bits: 24 }), 256)
})

test('what is no range is none', async (t) => {
  for (const text of [
    '',
    '10.0.0.0',
    '10.0.0.0/33',
    '10.0.0.256/24',
    '10.0.0.1/24',
    '10.0.0/24',
    'fd00::/64',
    ' 10.0.0.0/8',
  ]) {
    t.equal(parseCidr(text), undefined, text)
  }
})
