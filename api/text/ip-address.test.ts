import { isIP } from 'node:net'
import { test } from 'tap'
import { fuzzSeed } from '../../daemon/testing/fuzz.ts'
import { seededRandom } from '../../daemon/testing/seeded-random.ts'
import { canonicalIPv6, hostPort, isIPAddress } from './ip-address.ts'

const texts = [
  ...[
    '10.0.0.1',
    '0.0.0.0',
    '255.255.255.255',
    '256.0.0.1',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '',
    ' 1.2.3.4',
    'a.b.c.d',
  ],
  ...['::', '::1', '1::', '2001:db8::ffff', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:8:9', '1::2::3'],
  ...['::ffff:192.0.2.1', '1:2:3:4:5:6:192.0.2.1', '192.0.2.1::', '::192.0.2.1:1', '12345::', 'g::', ':1', '1:', ':::'],
  ...['1:2:3:4:5:6:7::', '::1:2:3:4:5:6:7', '1:2:3:4::5:6:7:8', 'fe80::1'],
]

test('an address is what the machine takes for one', async (t) => {
  for (const text of texts) t.equal(isIPAddress(text), isIP(text) !== 0, text)
})

test('an IPv6 address has one canonical form', async (t) => {
  const forms: readonly (readonly [text: string, canonical: string | undefined])[] = [
    ['10.0.0.1', undefined],
    ['x', undefined],
    ['::', '::'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:db8::1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['fe80::0001', 'fe80::1'],
    ['::FFFF:192.0.2.1', '::ffff:192.0.2.1'],
    ['::ffff:c000:201', '::ffff:192.0.2.1'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
  ]
  for (const [text, canonical] of forms) t.equal(canonicalIPv6(text), canonical, text)
})

test('random addresses of few digits have the canonical form of the machine', async (t) => {
  const random = seededRandom(fuzzSeed)
  const digits = ['0', '0', '1', 'a', 'ffff', '0f']
  for (let round = 0; round < 5_000; round++) {
    const groups = Array.from({ length: 8 }, () => digits[Math.floor(random() * digits.length)] ?? '0')
    const [from, to] = [Math.floor(random() * 9), Math.floor(random() * 9)].sort((one, other) => one - other)
    const text = `${groups.slice(0, from).join(':')}::${groups.slice(to).join(':')}`
    const found = canonicalIPv6(text)
    if (isIP(text) === 0) t.equal(found, undefined, text)
    else if (found?.includes('.')) t.match(found, /^::ffff:\d+\.\d+\.\d+\.\d+$/, text)
    else t.equal(found, new URL(`http://[${text}]`).hostname.slice(1, -1), text)
  }
})

test('an IPv6 address has brackets before a port', async (t) => {
  t.same(
    ['10.244.1.5', 'fd00::5', 'pi-1'].map((host) => hostPort(host, 80)),
    ['10.244.1.5:80', '[fd00::5]:80', 'pi-1:80'],
  )
})
