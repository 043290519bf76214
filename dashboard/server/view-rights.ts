/** Which cards an identity may see: by the rules for listing the objects that they are made of. */
import type { CardKind, ViewRights } from '../../api/dashboard/dashboard-messages.ts'
import type { Identity } from '../../api/identity.ts'
import type { Authorizer } from '../../broker-controller/apiserver/handlers/authorizer.ts'

type Listed = { readonly group: string; readonly resource: string }

const workloadKinds = ['deployments', 'statefulsets', 'daemonsets'].map((resource) => ({ group: 'apps', resource }))
/** With more namespaces, only rights in all of them count. */
const mostNamespaces = 200

/** `namespaces`: all of the fleet. Rights in one namespace are asked for only where those in all are not given. */
export async function viewRights(
  identity: Identity,
  access: Pick<Authorizer, 'decide'>,
  namespaces: readonly string[],
): Promise<ViewRights> {
  const mayList = async ({ group, resource }: Listed, namespace = '') => {
    const place = { group, resource, namespace, subresource: '', name: '', fields: new Map<string, string>() }
    return (await access.decide(identity, { kind: 'resource', verb: 'list', ...place })).allowed
  }
  const mayListAll = async (kinds: readonly Listed[], namespace = '') => {
    for (const kind of kinds) if (!(await mayList(kind, namespace))) return false
    return true
  }
  const inNamespaces = async (...kinds: readonly Listed[]) => {
    if (await mayListAll(kinds)) return true
    const allowed: string[] = []
    for (const namespace of namespaces.slice(0, mostNamespaces)) {
      if (await mayListAll(kinds, namespace)) allowed.push(namespace)
    }
    return allowed.length > 0 && allowed
  }
  return {
    nodes: await mayList({ group: '', resource: 'nodes' }),
    usage: await mayList({ group: 'metrics.k8s.io', resource: 'nodes' }),
    requests: await mayList({ group: 'certificates.k8s.io', resource: 'certificatesigningrequests' }),
    pods: await inNamespaces({ group: '', resource: 'pods' }),
    events: await inNamespaces({ group: '', resource: 'events' }),
    workloads: await inNamespaces(...workloadKinds),
  }
}

/** Whether a card of this kind and namespace is among them. */
export function isVisible(rights: ViewRights, kind: CardKind, namespace: string): boolean {
  const right = rights[kind]
  return typeof right === 'boolean' ? right : right.includes(namespace)
}
