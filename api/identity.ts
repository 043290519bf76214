/** The authenticated client: a user and groups, from a client certificate's subject (CN, O) or a token. */
import { dnsSubdomainProblem } from './names.ts'

export type Identity = {
  readonly user: string
  readonly groups: readonly string[]
  /** UID of the object that represents the user, such as a service account. */
  readonly uid?: string
  /** What else authentication established, as Kubernetes' `extra`. */
  readonly extra?: { readonly [key: string]: readonly string[] }
}

/** In `extra`: the store that the node's certificate is older than. */
export const olderThanStoreKey = 'bramble.dev/certificate-older-than-store'

/** In `extra`: the node whose certificate, lapsed or not, the connection was made with. TLS proved its key. */
export const provenNodeKey = 'bramble.dev/proven-node'

export const nodesGroup = 'system:nodes'
export const mastersGroup = 'system:masters'
export const bootstrappersGroup = 'system:bootstrappers'
/** Nodes whose certificate has ended: they may ask for a new one, and nothing else. */
export const lapsedNodesGroup = 'bramble:lapsed-nodes'
export const authenticatedGroup = 'system:authenticated'
export const nodeUserPrefix = 'system:node:'

/** The administrator our kubeconfig names. */
export const administrator: Identity = { user: 'kubernetes-admin', groups: [mastersGroup] }
/** A controller: to another one that leads, and to an external MQTT server. */
export const peerControllerIdentity: Identity = { user: 'system:bramble-controller', groups: [] }
/** The maintenance of machines, when it evicts pods by the API. The ClusterRole of its name is bound to it. */
export const maintenanceIdentity: Identity = { user: 'bramble:maintenance', groups: [] }
/** Who presses a button in Home Assistant. The ClusterRole of its name is bound to it. */
export const homeAssistantIdentity: Identity = { user: 'bramble:home-assistant', groups: [] }
/** The identity of a client without certificate and token. */
export const anonymous: Identity = { user: 'system:anonymous', groups: ['system:unauthenticated'] }

export function nodeIdentity(nodeName: string): Identity {
  return { user: `${nodeUserPrefix}${nodeName}`, groups: [nodesGroup] }
}

/** The node a user name stands for; undefined when it stands for none. */
export function nodeNameOf(user: string): string | undefined {
  if (!user.startsWith(nodeUserPrefix)) return undefined
  const name = user.slice(nodeUserPrefix.length)
  return dnsSubdomainProblem(name) === undefined ? name : undefined
}

/** The node this is: named as one and a member of the nodes' group. */
export function nodeOf({ user, groups }: Identity): string | undefined {
  return groups.includes(nodesGroup) ? nodeNameOf(user) : undefined
}

/** The node this was until its certificate ended. */
export function lapsedNodeOf({ user, groups }: Identity): string | undefined {
  return groups.includes(lapsedNodesGroup) ? nodeNameOf(user) : undefined
}

/** The identity in a certificate's subject, as Node.js presents it: a repeated field is a list. undefined without one CN. */
export function identityOfSubject(subject: { readonly CN?: unknown; readonly O?: unknown }): Identity | undefined {
  if (typeof subject.CN !== 'string' || subject.CN === '') return undefined
  const organizations: readonly unknown[] = Array.isArray(subject.O) ? subject.O : [subject.O]
  return { user: subject.CN, groups: organizations.filter((group) => typeof group === 'string') }
}
