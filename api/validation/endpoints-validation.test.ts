import { test } from 'tap'
import { endpointAddressProblems } from './endpoints-validation.ts'

const because = (ip: string) => endpointAddressProblems('ip', ip).map(({ message }) => message)

test('no form of an address leads from the endpoints of a Service to the machine itself', async (t) => {
  const loopback = ['127.0.0.1', '127.8.9.1', '::1', '0:0:0:0:0:0:0:1', '::0001', '::FFFF:127.0.0.1', '::ffff:7f00:1']
  for (const ip of [...loopback, '0:0:0:0:0:ffff:127.0.0.1', '0::ffff:7f00:0001']) {
    t.match(because(ip), [/may not be in the loopback range/], ip)
  }
  const linkLocal = ['169.254.169.254', 'fe80::1', 'FEBF::1', '::ffff:a9fe:a9fe', '0:0:0:0:0:ffff:169.254.0.1']
  for (const ip of linkLocal) t.match(because(ip), [/may not be in the link-local range/], ip)
  for (const ip of ['224.0.0.1', 'ff02::1', 'ff12::1', '::ffff:e000:1']) {
    t.match(because(ip), [/may not be in the link-local multicast range/], ip)
  }
  for (const ip of ['0.0.0.0', '::', '0:0:0:0:0:0:0:0', '::ffff:0.0.0.0', '::ffff:0:0']) {
    t.match(because(ip), [/may not be unspecified/], ip)
  }
})

test('other addresses are endpoints', async (t) => {
  for (const ip of [
    '10.0.0.1',
    '128.0.0.1',
    '224.0.1.1',
    '2001:db8::1',
    '::ffff:10.0.0.1',
    'fe8::1',
    'fec0::1',
    'ff05::2',
  ]) {
    t.same(because(ip), [], ip)
  }
})
