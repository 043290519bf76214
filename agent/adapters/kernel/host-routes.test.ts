import { mkdir, writeFile } from 'node:fs/promises'
import { endianness } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { formatCidr } from '../../../api/text/cidr.ts'
import { testFolder } from '../../../daemon/testing/test-folder.ts'
import { routeInTheWay } from '../docker/network.ts'
import { readIPv6Routes, readRoutes } from './host-routes.ts'

const table = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	0101A8C0	0003	0	0	0	00000000	0	0	0
eth0	0001A8C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
wg0	0000F40A	00000000	0001	0	0	0	0000FFFF	0	0	0
eth0	0000000A	0101A8C0	0003	0	0	0	000000FF	0	0	0
`

test('routes of the machine, and which of them pods must leave alone', { skip: endianness() !== 'LE' }, async (t) => {
  const root = testFolder(t)
  await mkdir(join(root, 'proc/net'), { recursive: true })
  await writeFile(join(root, 'proc/net/route'), table)
  const routes = readRoutes(root)
  t.same(
    routes.map(({ interface: name, range, direct }) => [name, formatCidr(range), direct]),
    [
      ['eth0', '192.168.1.0/24', true],
      ['wg0', '10.244.0.0/16', true],
      ['eth0', '10.0.0.0/8', false],
    ],
  )
  t.match(
    routeInTheWay('10.244.3.0/24', routes),
    /^addresses of podCIDR 10\.244\.3\.0\/24 .* 10\.244\.0\.0\/16 on wg0 /,
  )
  t.match(routeInTheWay('192.168.0.0/16', routes), /192\.168\.1\.0\/24 on eth0/)
  t.equal(routeInTheWay('10.42.1.0/24', routes), undefined, 'of a wider network behind a gateway')
  t.same(readRoutes('/nonexistent'), [])
})

test('rows that are not addresses are left out', { skip: endianness() !== 'LE' }, async (t) => {
  const root = testFolder(t, {
    proc: {
      net: {
        route: [
          'eth0 0001A8C00 00000000 0001 0 0 0 00FFFFFF',
          'eth0 X0001A8C0 00000000 0001 0 0 0 00FFFFFF',
          'eth0 0001A8C0 00000000 0001 0 0 0 000FFFFFF',
          'eth0 0001A8C0 00000000 0001 0 0 0 X00FFFFFF',
          '  wlan0   0001A8C0  00000000   0001 0 0 0   00FFFFFF  ',
          'eth0 0002A8C0',
        ].join('\n'),
      },
    },
  })
  t.same(
    readRoutes(root).map(({ interface: name, range, direct }) => [name, formatCidr(range), direct]),
    [['wlan0', '192.168.1.0/24', true]],
  )
})

const none = '0'.repeat(32)
const row = (destination: string, bits: string, hop: string, metric: string, flags: string, name: string) =>
  `${destination.padEnd(32, '0')} ${bits} ${none} 00 ${hop} ${metric} 00000001 00000000 ${flags} ${name.padStart(8)}`

test('IPv6 routes are those of the machine without its own addresses, multicast and the default route', async (t) => {
  const hop = 'fd000001000000000000000000000002'
  const rows = [
    row('fd0000100244000200000000', '40', hop, '00000400', '00000003', 'eth0'),
    row('fd0000010000000000000000', '40', none, '00000100', '00000001', 'eth0'),
    row('fd00001002440000', '38', none, '00100000', '00200200', 'lo'),
    row('fd000001000000000000000000000001', '80', none, '00000000', '80200001', 'eth0'),
    row('fd000001', '80', none, '00000000', '00300001', 'eth0'),
    row('ff', '08', none, '00000100', '00000001', 'eth0'),
    row('', '00', hop, '00000400', '00000003', 'eth0'),
    'not a route',
  ]
  const root = testFolder(t, { proc: { net: { ipv6_route: rows.join('\n') } } })
  t.same(readIPv6Routes(root), [
    { interface: 'eth0', range: 'fd00:10:244:2::/64', direct: false, gateway: 'fd00:1::2', metric: 1024 },
    { interface: 'eth0', range: 'fd00:1::/64', direct: true, metric: 256 },
    { interface: '*', range: 'fd00:10:244::/56', direct: true, metric: 1_048_576 },
  ])
  t.same(readIPv6Routes('/nonexistent'), [])
})
