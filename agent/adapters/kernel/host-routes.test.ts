import { mkdir, writeFile } from 'node:fs/promises'
import { endianness } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { formatCidr } from '../../../api/text/cidr.ts'
import { routeInTheWay } from '../docker/network.ts'
import { readRoutes } from './host-routes.ts'

const table = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	0101A8C0	0003	0	0	0	00000000	0	0	0
eth0	0001A8C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
wg0	0000F40A	00000000	0001	0	0	0	0000FFFF	0	0	0
eth0	0000000A	0101A8C0	0003	0	0	0	000000FF	0	0	0
`

test('routes of the machine, and which of them pods must leave alone', { skip: endianness() !== 'LE' }, async (t) => {
  const root = t.testdir()
  await mkdir(join(root, 'proc/net'), { recursive: true })
  await writeFile(join(root, 'proc/net/route'), table)
  const routes = await readRoutes(root)
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
  t.same(await readRoutes('/nonexistent'), [])
})

test('rows that are no addresses are left out', { skip: endianness() !== 'LE' }, async (t) => {
  const root = t.testdir({
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
    (await readRoutes(root)).map(({ interface: name, range, direct }) => [name, formatCidr(range), direct]),
    [['wlan0', '192.168.1.0/24', true]],
  )
})
