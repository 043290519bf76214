/** apiregistration.k8s.io/v1 APIService: which server answers for a version of a group. */
import { ObjectMetaSchema } from '../meta.ts'
import {
  bool,
  bytes,
  type Described,
  field,
  integer,
  listBy,
  object,
  oneOf,
  optional,
  pointer,
  text,
  time,
} from '../schema.ts'

export const registrationGroup = 'apiregistration.k8s.io'

/** On the APIServices that the server makes and removes by itself (kube-aggregator, pkg/controllers/autoregister). */
export const automanagedLabel = 'kube-aggregator.kubernetes.io/automanaged'

const ServiceReferenceSchema = object('apiregistration.v1.ServiceReference', {
  namespace: field(1, optional(text)),
  name: field(2, optional(text)),
  port: pointer(3, optional(integer)),
})
export type APIServiceReference = Described<typeof ServiceReferenceSchema>

const SpecSchema = object('apiregistration.v1.APIServiceSpec', {
  service: pointer(1, optional(ServiceReferenceSchema)),
  group: field(2, optional(text)),
  version: field(3, optional(text)),
  insecureSkipTLSVerify: field(4, optional(bool)),
  caBundle: field(5, optional(bytes)),
  groupPriorityMinimum: field(7, integer),
  versionPriority: field(8, integer),
})
export type APIServiceSpec = Described<typeof SpecSchema>

const ConditionSchema = object('apiregistration.v1.APIServiceCondition', {
  type: field(1, text),
  status: field(2, text),
  lastTransitionTime: field(3, optional(time)),
  reason: field(4, optional(text)),
  message: field(5, optional(text)),
})
export type APIServiceCondition = Described<typeof ConditionSchema>

const StatusSchema = object('apiregistration.v1.APIServiceStatus', {
  conditions: field(1, optional(listBy('type', ConditionSchema))),
})
export type APIServiceStatus = Described<typeof StatusSchema>

export const APIServiceSchema = object({
  apiVersion: oneOf('apiregistration.k8s.io/v1'),
  kind: oneOf('APIService'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(2, SpecSchema),
  status: field(3, optional(StatusSchema)),
})
export type APIService = Described<typeof APIServiceSchema>

/** `VERSION.GROUP`, the only name that an APIService may have. */
export function registrationName({ group, version }: { readonly group: string; readonly version: string }): string {
  return `${version}.${group}`
}

/** undefined: it was not checked yet. */
export function availableCondition({ status }: Pick<APIService, 'status'>): APIServiceCondition | undefined {
  return status?.conditions?.find(({ type }) => type === 'Available')
}

/** An answer of the availability check. */
export type Availability = {
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
}

/** The condition of an APIService without a Service (NewLocalAvailableAPIServiceCondition). */
export const localAvailability: Availability = {
  status: 'True',
  reason: 'Local',
  message: 'Local APIServices are always available',
}

/** `now` is RFC 3339. The same status where nothing changes (SetAPIServiceCondition). */
export function withAvailability(
  before: APIServiceStatus | undefined,
  { status, reason, message }: Availability,
  now: string,
): APIServiceStatus {
  const conditions = before?.conditions ?? []
  const present = conditions.find(({ type }) => type === 'Available')
  const isSame = present?.status === status
  if (before !== undefined && isSame && present.reason === reason && present.message === message) return before
  const lastTransitionTime = isSame ? present.lastTransitionTime : now
  const next = { type: 'Available', status, ...(lastTransitionTime && { lastTransitionTime }), reason, message }
  const others = present === undefined ? [...conditions, next] : conditions.map((one) => (one === present ? next : one))
  return { ...before, conditions: others }
}
