/**
 * What the kernel itself takes for the ways that `paths.ts` measures: the same links, bridges, routes and VXLAN between network
 * namespaces, without Docker, without rules of anyone and without tracking of connections within them.
 */
import { randomBytes } from 'node:crypto'
import type { Teardown } from '../../test/support/fleet.ts'
import { commandOrThrow } from '../../test/support/machine-commands.ts'
import type { MachineNetwork } from '../../test/support/machine-network.ts'
import { ownSpace } from '../../test/support/own-space.ts'
import { plugged, type Space } from '../../test/support/routed-machines.ts'
import { wire } from './wire.ts'

/** A network namespace and its address. */
export type Place = { readonly net: string; readonly address: string }

export type BarePaths = {
  readonly bridge: readonly [Place, Place]
  readonly route: readonly [Place, Place]
  readonly vxlan: readonly [Place, Place]
}

/** On the link of `network`. `vxlan`: its options, `udpcsum` for example. */
export async function barePaths(
  ending: Teardown,
  network: MachineNetwork,
  vxlan: readonly string[] = [],
): Promise<BarePaths> {
  const [first, second] = [await plugged(ending, network), await plugged(ending, network)]
  await wire(first, second)
  const machine = async (own: Space, other: Space, [here, there]: readonly [number, number]) => {
    const pods = await bridge(own, `10.9.${here}`)
    await own.run('ip', 'route', 'add', `10.9.${there}.0/24`, 'via', other.address)
    await own.run(...['ip', 'link', 'add', 'vx', 'type', 'vxlan', 'id', '7', 'dstport', '8479', 'nolearning', ...vxlan])
    await own.run('ip', 'link', 'set', 'dev', 'vx', 'address', macOf(here), 'mtu', '1450', 'up')
    const tunnelled = await bridge(own, `10.9.${here + 100}`)
    const range = `10.9.${there + 100}`
    await own.run('ip', 'neighbour', 'add', `${range}.0`, 'lladdr', macOf(there), 'dev', 'vx', 'nud', 'permanent')
    await own.run('bridge', 'fdb', 'add', macOf(there), 'dev', 'vx', 'dst', other.address, 'self', 'permanent')
    await own.run('ip', 'route', 'add', `${range}.0/24`, 'via', `${range}.0`, 'dev', 'vx', 'onlink')
    return { pod: pods.pod, tunnelled: tunnelled.pod }
  }
  const one = await machine(first, second, [1, 2])
  const two = await machine(second, first, [2, 1])
  const [near, far] = [await one.pod(2), await two.pod(2)]
  return {
    bridge: [near, await one.pod(3)],
    route: [near, far],
    vxlan: [await one.tunnelled(2, 1450), await two.tunnelled(2, 1450)],
  }

  /** A bridge with the first address of `range`, and pods behind it. */
  async function bridge({ space, run }: Space, range: string) {
    const name = `p${range.split('.').at(-1)}`
    await run('ip', 'link', 'add', name, 'up', 'type', 'bridge')
    await run('ip', 'address', 'add', `${range}.1/24`, 'dev', name)
    await run('sysctl', '-qw', 'net.ipv4.ip_forward=1')
    return {
      async pod(number: number, mtu = 1500): Promise<Place> {
        const inside = await ownSpace(ending)
        const port = `v${randomBytes(4).toString('hex')}`
        await run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', inside.name)
        await commandOrThrow('ip', ['-n', space, 'link', 'set', port, 'master', name, 'up'])
        await inside.run('ip', 'link', 'set', 'eth0', 'mtu', `${mtu}`, 'up')
        await inside.run('ip', 'address', 'add', `${range}.${number}/24`, 'dev', 'eth0')
        await inside.run('ip', 'route', 'add', 'default', 'via', `${range}.1`)
        return { net: `/run/netns/${inside.name}`, address: `${range}.${number}` }
      },
    }
  }
}

function macOf(number: number): string {
  return `02:00:0a:09:00:${number.toString(16).padStart(2, '0')}`
}
