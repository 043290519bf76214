import { test } from 'tap'
import { parseWireguardEndpoint, wireguardEndpointProblem, wireguardKeyProblem } from './wireguard.ts'

const key = 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg='

test('a key is the base64 of 32 bytes, and not zero', (t) => {
  t.equal(wireguardKeyProblem(key), undefined)
  t.equal(wireguardKeyProblem(Buffer.alloc(32, 255).toString('base64')), undefined)
  for (const text of [
    '',
    key.slice(0, -1),
    `${key}\n`,
    ` ${key}`,
    `${key}=`,
    key.replace('x', '-'),
    key.replace('Dg=', 'Dh='),
    Buffer.alloc(31, 7).toString('base64'),
    Buffer.alloc(33, 7).toString('base64'),
    Buffer.alloc(32).toString('base64'),
    `${'A'.repeat(40)}; id`,
  ])
    t.match(wireguardKeyProblem(text), /32 bytes/, JSON.stringify(text))
  t.end()
})

test('an endpoint has an address or a name, and a port', (t) => {
  t.same(parseWireguardEndpoint('192.0.2.7:51871'), { host: '192.0.2.7', port: 51_871 })
  t.same(parseWireguardEndpoint('[2001:db8::7]:1'), { host: '2001:db8::7', port: 1 })
  t.same(parseWireguardEndpoint('[fd00:9::7]:1'), { host: 'fd00:9::7', port: 1 })
  t.same(parseWireguardEndpoint('[64:ff9b::192.0.2.7]:1'), { host: '64:ff9b::192.0.2.7', port: 1 })
  t.same(parseWireguardEndpoint('home.example.org:65535'), { host: 'home.example.org', port: 65_535 })
  t.same(parseWireguardEndpoint('7seas:80'), { host: '7seas', port: 80 })
  t.end()
})

test('what a program could take for something else is not an endpoint', (t) => {
  for (const text of [
    '',
    'home.example.org',
    ':51871',
    'a:b:51871',
    '192.0.2.7:0',
    '192.0.2.7:65536',
    '192.0.2.7:051871',
    '192.0.2.7:51871 ',
    '192.0.2.7:51871\n',
    '192.0.2.7:$(id)',
    '$(id):51871',
    '--help:51871',
    'UPPER:51871',
    '0x7f.1:80',
    '10.1:80',
    '127.0.0.1:80',
    '0.0.0.0:80',
    '224.0.0.1:80',
    '255.255.255.255:80',
    '2001:db8::7:80',
    '[2001:db8::7%eth0]:80',
    '[::]:80',
    '[::1]:80',
    '[::ffff:192.0.2.7]:80',
    '[fe80::7]:80',
    '[ff02::1]:80',
    '[192.0.2.7]:80',
    '[]:80',
    `${'a'.repeat(254)}:80`,
  ]) {
    t.equal(parseWireguardEndpoint(text), undefined, JSON.stringify(text))
    t.match(wireguardEndpointProblem(text), /HOST:PORT/)
  }
  t.equal(wireguardEndpointProblem('none'), undefined)
  t.equal(wireguardEndpointProblem('home.example.org:51871'), undefined)
  t.end()
})
