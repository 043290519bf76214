import { test } from 'tap'
import { rangeHas } from './address-block.ts'

test('a range has the addresses of its own family within its mask', async (t) => {
  for (const [range, ip] of [
    ['10.244.0.0/16', '10.244.255.255'],
    ['0.0.0.0/0', '1.2.3.4'],
    ['10.0.0.1/32', '10.0.0.1'],
    ['fd00:10:244::/56', 'fd00:10:244:ff::1'],
    ['::/0', '2001:db8::1'],
    ['fd00::1/128', 'fd00::1'],
    ['fd00:10:244::/56', 'fd00:10:244::10.0.0.1'],
  ] as const)
    t.ok(rangeHas(range, ip), `${range} ${ip}`)
  for (const [range, ip] of [
    ['10.244.0.0/16', '10.245.0.0'],
    ['10.0.0.1/32', '10.0.0.0'],
    ['fd00:10:244::/56', 'fd00:10:244:100::1'],
    ['fd00::1/128', 'fd00::'],
    ['0.0.0.0/0', '::'],
    ['::/0', '0.0.0.0'],
    ['::/0', 'none'],
    ['none', '10.0.0.1'],
  ] as const)
    t.notOk(rangeHas(range, ip), `${range} ${ip}`)
})
