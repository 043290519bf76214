/** A link between two machines of a benchmark that costs them nothing. */
import { commandOrThrow } from '../../test/support/machine-commands.ts'
import type { Space } from '../../test/support/routed-machines.ts'

/**
 * Leads packets between these two past the bridge of this host, as a switch would: with a Docker here each of them would pass the rules
 * of this host in between, and its table of connections. What is sent to all goes through the bridge as before. Gone with the machines.
 */
export async function wire(one: Space, other: Space): Promise<void> {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    const mac = /link\/ether ([0-9a-f:]{17})/.exec(await to.run('ip', 'link', 'show', 'dev', 'host0'))?.[1]
    if (mac === undefined) throw new Error(`${to.space} has no link`)
    await commandOrThrow('tc', ['qdisc', 'add', 'dev', from.space, 'clsact'])
    const match = ['protocol', 'ip', 'u32', 'match', 'ether', 'dst', mac]
    const redirect = ['action', 'mirred', 'egress', 'redirect', 'dev', to.space]
    await commandOrThrow('tc', ['filter', 'add', 'dev', from.space, 'ingress', ...match, ...redirect])
  }
}
