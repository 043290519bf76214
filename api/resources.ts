/**
 * The kinds we serve, one row each: what a path, a discovery document and a store key call them. The schema of the row
 * is the kind's one declaration.
 */
import { type CertificateSigningRequest, CertificateSigningRequestSchema } from './certificate-signing-request.ts'
import { type ConfigMap, ConfigMapSchema } from './config-map.ts'
import { type Event, EventSchema } from './event.ts'
import { type Lease, LeaseSchema } from './lease.ts'
import { type Namespace, NamespaceSchema } from './namespace.ts'
import { type Node, NodeSchema } from './node.ts'
import { type Pod, PodSchema } from './pod.ts'
import { type PodDisruptionBudget, PodDisruptionBudgetSchema } from './pod-disruption-budget.ts'
import { type PriorityClass, PriorityClassSchema } from './priority-class.ts'
import type { TSchema } from './schema.ts'
import { type Secret, SecretSchema } from './secret.ts'

/** Resource name (the plural in a path) to the type of its objects. */
export type ResourceTypes = {
  nodes: Node
  pods: Pod
  namespaces: Namespace
  configmaps: ConfigMap
  secrets: Secret
  events: Event
  leases: Lease
  certificatesigningrequests: CertificateSigningRequest
  priorityclasses: PriorityClass
  poddisruptionbudgets: PodDisruptionBudget
}
export type ResourceName = keyof ResourceTypes

export type Resource = {
  readonly name: ResourceName
  readonly singular: string
  readonly kind: string
  /** '' for the core group. */
  readonly group: string
  readonly version: string
  readonly namespaced: boolean
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  /** `status` is one when the kind has it: spec and status are then written apart. */
  readonly subresources: readonly string[]
  /** Does `metadata.generation` count changes of the specification? */
  readonly counted: boolean
  readonly schema: TSchema
}

export const resources: { readonly [Name in ResourceName]: Resource & { readonly name: Name } } = {
  nodes: row('nodes', 'Node', '', NodeSchema, {
    shortNames: ['no'],
    subresources: ['status', 'checkpoint'],
  }),
  pods: row('pods', 'Pod', '', PodSchema, {
    namespaced: true,
    shortNames: ['po'],
    categories: ['all'],
    subresources: ['status', 'binding', 'eviction', 'ephemeralcontainers'],
  }),
  namespaces: row('namespaces', 'Namespace', '', NamespaceSchema, {
    shortNames: ['ns'],
    subresources: ['status'],
  }),
  configmaps: row('configmaps', 'ConfigMap', '', ConfigMapSchema, { namespaced: true, shortNames: ['cm'] }),
  secrets: row('secrets', 'Secret', '', SecretSchema, { namespaced: true }),
  events: row('events', 'Event', '', EventSchema, { namespaced: true, shortNames: ['ev'] }),
  leases: row('leases', 'Lease', 'coordination.k8s.io', LeaseSchema, { namespaced: true }),
  certificatesigningrequests: row(
    'certificatesigningrequests',
    'CertificateSigningRequest',
    'certificates.k8s.io',
    CertificateSigningRequestSchema,
    { shortNames: ['csr'], subresources: ['status', 'approval'] },
  ),
  priorityclasses: row('priorityclasses', 'PriorityClass', 'scheduling.k8s.io', PriorityClassSchema, {
    shortNames: ['pc'],
  }),
  poddisruptionbudgets: row('poddisruptionbudgets', 'PodDisruptionBudget', 'policy', PodDisruptionBudgetSchema, {
    namespaced: true,
    shortNames: ['pdb'],
    subresources: ['status'],
    counted: true,
  }),
}

/** `v1`, `coordination.k8s.io/v1`. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
}

function row<Name extends ResourceName>(
  name: Name,
  kind: string,
  group: string,
  schema: TSchema,
  more: Partial<Resource>,
): Resource & { readonly name: Name } {
  return {
    singular: kind.toLowerCase(),
    namespaced: false,
    shortNames: [],
    categories: [],
    subresources: [],
    counted: false,
    ...more,
    name,
    kind,
    group,
    version: 'v1',
    schema,
  }
}
