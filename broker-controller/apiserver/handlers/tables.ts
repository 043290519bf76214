/** meta.k8s.io/v1 Table: what `kubectl get` prints, computed here. */
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import type { ConfigMap } from '../../../api/config-map.ts'
import type { Event } from '../../../api/event.ts'
import type { Lease } from '../../../api/lease.ts'
import type { Namespace } from '../../../api/namespace.ts'
import type { PodDisruptionBudget } from '../../../api/pod-disruption-budget.ts'
import type { PriorityClass } from '../../../api/priority-class.ts'
import type { Resource, ResourceName, ResourceTypes } from '../../../api/resources.ts'
import type { Secret } from '../../../api/secret.ts'
import { nodeTable } from '../kinds/node-table.ts'
import { podRowConditions, podTable } from '../kinds/pod-table.ts'
import { ageOf, type Cell, columns, humanDuration, orNone, type TableOf } from './cells.ts'

type AnyObject = ResourceTypes[ResourceName]

export type IncludeObject = 'Metadata' | 'Object' | 'None'
export type ListMeta = {
  readonly resourceVersion?: string
  readonly continue?: string
  readonly remainingItemCount?: number
}
export type TableWish = {
  readonly nowMs: number
  readonly listMeta: ListMeta
  /** What each row carries beside its cells; without it kubectl can show neither namespace nor labels. */
  readonly includeObject: IncludeObject
}

/** The objects, all of that resource, as rows. */
export function tableOf(resource: Resource, objects: readonly AnyObject[], wish: TableWish) {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: wish.listMeta,
    columnDefinitions: tables[resource.name].columns.map((column) => ({ format: '', description: '', ...column })),
    rows: objects.map((object) => rowOf(object, wish)),
  }
}

function rowOf(object: AnyObject, { nowMs, includeObject }: TableWish) {
  const conditions = object.kind === 'Pod' ? podRowConditions(object) : undefined
  return {
    cells: cellsOf(object, nowMs),
    ...(conditions === undefined ? {} : { conditions }),
    ...(includeObject === 'None' ? {} : { object: includeObject === 'Object' ? object : metadataOf(object) }),
  }
}

function metadataOf({ metadata }: AnyObject) {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata }
}

function cellsOf(object: AnyObject, nowMs: number): readonly Cell[] {
  switch (object.kind) {
    case 'Node':
      return tables.nodes.cells(object, nowMs)
    case 'Pod':
      return tables.pods.cells(object, nowMs)
    case 'Namespace':
      return tables.namespaces.cells(object, nowMs)
    case 'ConfigMap':
      return tables.configmaps.cells(object, nowMs)
    case 'Secret':
      return tables.secrets.cells(object, nowMs)
    case 'Event':
      return tables.events.cells(object, nowMs)
    case 'Lease':
      return tables.leases.cells(object, nowMs)
    case 'CertificateSigningRequest':
      return tables.certificatesigningrequests.cells(object, nowMs)
    case 'PriorityClass':
      return tables.priorityclasses.cells(object, nowMs)
    case 'PodDisruptionBudget':
      return tables.poddisruptionbudgets.cells(object, nowMs)
  }
}

const namespaceTable: TableOf<Namespace> = {
  columns: columns('Name', 'Status', 'Age'),
  cells: ({ metadata, status }, nowMs) => [
    metadata.name ?? '',
    status?.phase ?? '',
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

const configMapTable: TableOf<ConfigMap> = {
  columns: columns('Name', 'Data', 'Age'),
  cells: ({ metadata, data = {}, binaryData = {} }, nowMs) => [
    metadata.name ?? '',
    Object.keys(data).length + Object.keys(binaryData).length,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

/** Counts only: what is secret stands in no cell. */
const secretTable: TableOf<Secret> = {
  columns: columns('Name', 'Type', 'Data', 'Age'),
  cells: ({ metadata, type = '', data = {} }, nowMs) => [
    metadata.name ?? '',
    type,
    Object.keys(data).length,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

const eventTable: TableOf<Event> = {
  columns: columns(
    'Last Seen',
    'Type',
    'Reason',
    'Object',
    'Subobject*',
    'Source*',
    'Message',
    'First Seen*',
    'Count*',
    'Name*',
  ),
  cells: (event, nowMs) => {
    const first = event.firstTimestamp ?? event.eventTime
    const last = event.series?.lastObservedTime ?? event.lastTimestamp ?? first
    return [
      ageOf(last, nowMs),
      event.type ?? '',
      event.reason ?? '',
      objectOf(event),
      event.involvedObject.fieldPath ?? '',
      sourceOf(event),
      (event.message ?? '').trim(),
      ageOf(first, nowMs),
      event.series?.count ?? event.count ?? 1,
      event.metadata.name ?? '',
    ]
  },
}

function objectOf({ involvedObject: { kind = '', name = '' } }: Event): string {
  return name === '' ? kind.toLowerCase() : `${kind.toLowerCase()}/${name}`
}

function sourceOf({ source = {}, reportingComponent, reportingInstance }: Event): string {
  const component = source.component || reportingComponent || ''
  const host = source.host || reportingInstance
  return host ? `${component}, ${host}` : component
}

const leaseTable: TableOf<Lease> = {
  columns: columns('Name', 'Holder', 'Age'),
  cells: ({ metadata, spec }, nowMs) => [
    metadata.name ?? '',
    spec?.holderIdentity ?? '',
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

const requestTable: TableOf<CertificateSigningRequest> = {
  columns: columns('Name', 'Age', 'SignerName', 'Requestor', 'RequestedDuration', 'Condition'),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    ageOf(metadata.creationTimestamp, nowMs),
    orNone(spec.signerName),
    spec.username ?? '',
    spec.expirationSeconds === undefined ? '<none>' : humanDuration(spec.expirationSeconds * 1000),
    verdictOf(status),
  ],
}

const priorityClassTable: TableOf<PriorityClass> = {
  columns: [
    ...columns('Name'),
    { name: 'Value', type: 'integer', priority: 0 },
    { name: 'Global-Default', type: 'boolean', priority: 0 },
    ...columns('Age', 'PreemptionPolicy'),
  ],
  cells: ({ metadata, value, globalDefault = false, preemptionPolicy = '' }, nowMs) => [
    metadata.name ?? '',
    value,
    globalDefault,
    ageOf(metadata.creationTimestamp, nowMs),
    preemptionPolicy,
  ],
}

function verdictOf(status: CertificateSigningRequest['status']): string {
  const is = (wanted: string) => status?.conditions?.some(({ type }) => type === wanted) === true
  const verdict = is('Denied') ? 'Denied' : is('Approved') ? 'Approved' : 'Pending'
  return `${verdict}${is('Failed') ? ',Failed' : ''}${status?.certificate ? ',Issued' : ''}`
}

const budgetTable: TableOf<PodDisruptionBudget> = {
  columns: columns('Name', 'Min Available', 'Max Unavailable', 'Allowed Disruptions', 'Age'),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    String(spec?.minAvailable ?? 'N/A'),
    String(spec?.maxUnavailable ?? 'N/A'),
    status?.disruptionsAllowed ?? 0,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

const tables: { readonly [R in ResourceName]: TableOf<ResourceTypes[R]> } = {
  nodes: nodeTable,
  pods: podTable,
  namespaces: namespaceTable,
  configmaps: configMapTable,
  secrets: secretTable,
  events: eventTable,
  leases: leaseTable,
  certificatesigningrequests: requestTable,
  priorityclasses: priorityClassTable,
  poddisruptionbudgets: budgetTable,
}
