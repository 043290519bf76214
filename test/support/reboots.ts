/** What a reboot does to the network of machines while no controller runs, for machines that are network namespaces. */
import type { Test } from 'tap'
import type { TestDockerd } from './dockerd.ts'
import type { Controller } from './fleet.ts'
import type { Program } from './program.ts'
import type { Space } from './routed-machines.ts'

export type RebootedMachine = Pick<Space, 'run'> & {
  readonly docker: TestDockerd
  startAgent(): Promise<Program>
}

/** What the kernel forgets: interfaces, routes, rules and addresses of the agent, and what it has set. */
const forgotten = [
  '{ ip link delete bramble-vxlan || ip link delete bramble-wg; }',
  'ip -4 route flush proto 98',
  'ip -6 route flush proto 98',
  'nft delete table ip bramble',
  'nft delete table ip6 bramble',
  'ip address delete 169.254.20.10/32 dev lo',
  'sysctl -q -w net.ipv6.conf.all.forwarding=0',
]

/**
 * Ends the controller, the agents and the engines, removes what a reboot removes, and starts the engines and the agents. `makesBefore`: what
 * else a boot makes before an agent starts. Resolves with the agents once each has started a container.
 */
export async function rebootAlone(
  { program }: Pick<Controller, 'program'>,
  machines: readonly RebootedMachine[],
  agents: readonly Program[],
  makesBefore: () => Promise<unknown> = async () => undefined,
): Promise<readonly Program[]> {
  await Promise.all([program.stop(), ...agents.map((agent) => agent.stop())])
  await Promise.all(machines.map(({ run }) => run('sh', '-c', forgotten.join(' && '))))
  await Promise.all([...machines.map(({ docker }) => docker.restart()), makesBefore()])
  const again = await Promise.all(machines.map((machine) => machine.startAgent()))
  await Promise.all(again.map((agent) => agent.logged('Container started')))
  return again
}

/** The agent has put all of it in place before it started its first container. */
export function networkBeforePods(t: Test, { lines }: Program, { withIPv6 = false } = {}): void {
  const order = lines.map((line) =>
    line['family'] === undefined ? line.message : `${line.message}: ${line['family']}`,
  )
  const started = order.indexOf('Container started')
  const expected = [
    'Rules of the network applied',
    ...(withIPv6 ? ['Rules of the network applied: IPv6'] : []),
    'Routes to pods changed',
    'Names of the fleet are answered',
  ]
  for (const one of expected) {
    const at = order.indexOf(one)
    t.ok(at >= 0 && at < started, `${one}, before the first container`)
  }
}
