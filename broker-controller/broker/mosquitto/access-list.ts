/** Who may publish and read what, in the form of mosquitto.conf(5): the rules of `../mqtt/authorization.ts` for an external server. */
import { nodeIdentity } from '../../../api/identity.ts'
import { dnsSubdomainProblem } from '../../../api/names.ts'
import { filtersFrom } from '../topic-filters.ts'

/**
 * A block for the controller and one for each node; other clients have no rights. `nodes` in any order: names that cannot be in a topic
 * are left out. Mosquitto has no rules for QoS and retention.
 */
export function accessList(controller: string, nodes: Iterable<string>): string {
  const named = [...new Set(nodes)].filter((node) => dnsSubdomainProblem(node) === undefined).sort()
  // Derived once: a fleet of 10,000 nodes is one turn of the event loop.
  const rules = rulesOf(placeholder).join('\n')
  return [
    '# Written by bramble-controller: changes are lost.',
    `user ${controller}`,
    'topic readwrite bramble/v1/#',
    ...named.map((node) => `\nuser ${nodeIdentity(node).user}\n${rules.replaceAll(placeholder, node)}`),
    '',
  ].join('\n')
}

/** Those that have a block in the list. */
export function usersIn(list: string): ReadonlySet<string> {
  return new Set([...list.matchAll(/^user (.+)$/gm)].map(([, user = '']) => user))
}

/** No node has this name. */
const placeholder = 'NODE'

function rulesOf(node: string): readonly string[] {
  return [
    ...filtersFrom('node', node).map((filter) => `topic write ${filter}`),
    ...filtersFrom('controller', node).map((filter) => `topic read ${filter}`),
  ]
}
