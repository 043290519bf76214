import { test } from 'tap'
import { tunnelMtu } from './tunnel-mtu.ts'
import { tunnelDevice, wireguardDevice } from './tunnels.ts'

test('packets of a tunnel fit into the link with their headers', async (t) => {
  for (const [link, vxlan, wireguard] of [
    [undefined, 1450, 1420],
    [1500, 1450, 1420],
    [1492, 1442, 1412],
    [1400, 1350, 1320],
  ] as const) {
    t.equal(tunnelMtu(tunnelDevice, link), vxlan)
    t.equal(tunnelMtu(wireguardDevice, link), wireguard)
  }
})

test('jumbo frames of the link are not counted on, as the path may not have them', async (t) => {
  t.equal(tunnelMtu(tunnelDevice, 9000), 1450)
  t.equal(tunnelMtu(wireguardDevice, 65_536), 1420)
})

test('a tunnel keeps the MTU that IPv6 needs', async (t) => {
  t.equal(tunnelMtu(tunnelDevice, 1331), 1281)
  t.equal(tunnelMtu(tunnelDevice, 1329), 1280)
  t.equal(tunnelMtu(wireguardDevice, 1280), 1280)
  t.equal(tunnelMtu(wireguardDevice, 0), 1280)
})
