/**
 * What the API does differently for one kind, and the requests it does it for. The handlers of the verbs read a strategy
 * and name no kind, as the generic registry of Kubernetes does (staging/src/k8s.io/apiserver/pkg/registry/rest/create.go
 * and update.go; one strategy.go per kind below pkg/registry).
 */
import type { Readable } from 'node:stream'
import type { ObjectReader } from '../../../api/decode.ts'
import type { Identity } from '../../../api/identity.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { AddressRules } from '../../../api/node/reported-addresses.ts'
import type { Problem } from '../../../api/problem.ts'
import type { Resource, ResourceRegistry } from '../../../api/resources.ts'
import type { TSchema } from '../../../api/schema.ts'
import type { JSONSchemaProps } from '../../../api/structural/json-schema-props.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { SessionBoard } from '../../sessions/session-board.ts'
import type { CheckpointWindow } from '../../store/checkpoints/checkpoint-window.ts'
import type { ContentProver } from '../../store/checkpoints/content-proof.ts'
import type { EventRecorder } from '../../store/event-recorder.ts'
import type { Store, StoredObject, StoreOrigin } from '../../store/store.ts'
import type { ApiResponse } from '../wire/answers.ts'
import type { YamlParser } from '../wire/yaml-body.ts'
import type { Authorizer } from './authorizer.ts'
import type { TableOf } from './cells.ts'
import type { ConversionGate, KindConversion } from './conversion/conversion-gate.ts'
import type { PodSecurityGate, SecuredKind } from './pod-security-gate.ts'
import type { QuotaLedger } from './quota-ledger.ts'
import type { ServiceNetwork } from './service-network.ts'
import type { TokenIssuer } from './token-issuer.ts'
import type { WebhookGate } from './webhook-gate.ts'

/**
 * Methods take the objects of the kind: a handler passes only what was decoded with the schema of the strategy or read
 * from its resource in the store.
 */
export type KindStrategy<T extends AnyObject = AnyObject> = Resource & {
  /** What `kubectl get` prints. */
  readonly table: TableOf<T>
  /** Field selectors, beside `metadata.name` and `metadata.namespace`. */
  readonly selectableFields: readonly string[]
  /** In the order of discovery. A kind with `status` has its spec and its status written apart. */
  readonly subresources: { readonly [name: string]: Subresource<T> }
  /**
   * By subresource ('': the object itself), the paths of fields that a write to it leaves as they are, so that it owns none
   * of them (GetResetFields). undefined: the status, or for a write of the status the spec.
   */
  readonly resetFields?: { readonly [subresource: string]: readonly string[] }
  /** The bytes of JSON an object may have; undefined: those of any object. */
  readonly largestBytes?: number
  /** The fields and items of a body of this kind, and of an object; undefined: those of any object. */
  readonly mostValues?: number
  /** An update of an object that is not there creates it (AllowCreateOnUpdate is true). */
  readonly createdByUpdate?: true
  /** An update states the version that it replaces (AllowUnconditionalUpdate is false). */
  readonly needsVersion?: true
  /** What is wrong with a name; undefined: it must be a DNS subdomain. */
  readonly nameProblem?: (name: string) => string | undefined

  /** Its finalizers need no domain; undefined: all but the standard ones do. */
  readonly takesAnyFinalizer?: true

  /** The definition of the kind; undefined: it is built in. */
  readonly defined?: DefinedKind

  /** Objects of `id` in another form. All other members take them as they are stored. */
  readonly form?: ObjectForm

  /**
   * The fields that a status always has: in Go those of a struct, and those without `omitempty`. undefined: a kind without a status, or
   * whose status is set otherwise. Fields that would be null are left out.
   */
  readonly emptyStatus?: { readonly [field: string]: unknown }
  /** Sets what the author left out. Also applied to the stored object that an update replaces. */
  withDefaults?(object: T): T
  /** The object before anything has happened to it, whatever its author claims. */
  prepareForCreate?(object: T, facts: CreateFacts): T
  /** `now` with what only the server sets, taken from `old`. */
  prepareForUpdate?(old: T, now: T): T
  /** What is wrong with a new object, its defaults set. Metadata is checked for every kind. */
  validateCreate?(object: T, facts: CreateFacts): readonly Problem[]
  /** What is wrong with the object that replaces `old`. Both have their defaults. */
  validateUpdate?(old: T, now: T): readonly Problem[]
  /**
   * What is wrong with an object that has no other problems, where it may take long to find out: stops in between. `old`: what it
   * replaces, also by a write of a subresource; undefined: it is new.
   */
  lengthyProblems?(now: T, old: T | undefined): Generator<undefined, readonly Problem[]>

  /** `Warning` headers for the author of a new object that is valid, prepared and with its defaults. */
  warningsOnCreate?(object: T): readonly string[]
  /** The same of the object that replaces `old`; not for a write to a subresource. */
  warningsOnUpdate?(old: T, now: T): readonly string[]

  /** Reads what decides about a new object. Throws the ApiError of a refusal; so do the functions it gives. */
  admitCreate?(object: T, identity: Identity, needs: ResourceNeeds): Promise<CreateAdmission<T>>
  /** Judges the object that replaces `old`. Throws the ApiError of a refusal. */
  admitUpdate?(object: T, needs: ResourceNeeds, facts: UpdateFacts<T>): Promise<void>
  /** What Pod Security judges of it; undefined: nothing. */
  readonly podSecurity?: SecuredKind<T>
  /**
   * Writes an object that takes what others cannot have too, such as an address: calls `put` with the object that has it,
   * at most once. `old` is the object that it replaces. Throws the ApiError of a refusal. Undefined: the object is put as it is.
   */
  write?(object: T, old: T | undefined, needs: ResourceNeeds, put: Put<T>): Promise<AnyObject>
  /** What the certificate of a node may write (plugin/pkg/admission/noderestriction/admission.go); undefined: anything. */
  readonly nodeRestriction?: NodeRestriction<T>

  /** Objects that must not be deleted. */
  readonly undeletable?: { readonly names: readonly string[]; readonly because: string }
  /** A deletion that names no policy leaves what the object owns (DefaultGarbageCollectionPolicy OrphanDependents). */
  readonly orphansByDefault?: true
  /** Such a deletion warns its author. */
  readonly warnsOfOrphans?: true
  /** The garbage collector reads no objects of the kind: no policy holds one (GarbageCollectionPolicy Unsupported). */
  readonly hasNoDependents?: true
  /** Called before an object leaves the store. */
  beforeRemoval?(name: string, needs: Pick<ResourceNeeds, 'store' | 'clock'>): Promise<void>
  /** A deletion answers with the object as it was, not with a Status (genericregistry.Store.ReturnDeletedObject). */
  readonly returnsDeletedObject?: true
  /** Its objects are deleted one by one only (its storage is not a rest.CollectionDeleter). */
  readonly hasNoCollectionDeletion?: true
  /** How many objects of a collection are deleted at a time; undefined: as many as the store writes together. */
  readonly deletedTogether?: number
}

/** A kind that was defined at run time. */
export type DefinedKind = {
  readonly schema: JSONSchemaProps
  /** Another one for each change of the definition. */
  readonly stamp: string
  /** Aborts when the kind is defined otherwise, or no longer: its watches end. */
  readonly ended: AbortSignal
  /** The webhook between its versions; undefined: they differ in their `apiVersion` only. */
  readonly conversion?: KindConversion
  /** The definition is being deleted: no objects are created. */
  readonly isTerminating: boolean
  /** The `Warning` header of a version that is deprecated. */
  readonly warning?: string
}

/** How a group shows objects that another one stores. */
export type ObjectForm = {
  /** As it is stored, from an object that was decoded with the schema of the strategy. */
  read(object: AnyObject): AnyObject
  /** As clients see it. */
  show(object: AnyObject): AnyObject
  /** The stored field of each selectable field. */
  readonly fields: { readonly [selectable: string]: string }
}

/** The kinds that are served, with their strategies. */
export type KindRegistry = ResourceRegistry<KindStrategy>

export type CreateFacts = {
  readonly nowMs: number
  readonly requester: Identity
  /** It existed in the store before a restore: what happened to it in its life is kept. */
  readonly restored?: true
  /** Makes the uid of an object whose fields have it. Default: randomUUID. */
  readonly newUID?: (() => string) | undefined
}

export type UpdateFacts<T> = { readonly old: T; readonly requester: Identity; readonly subresource: string }

/** Into the store, or nowhere for a dry run. */
export type Put<T> = (object: T) => Promise<AnyObject>

export type CreateAdmission<T> = {
  /** Before defaults and validation, once it has its name. */
  mutate?(object: T): T
  /** The prepared object as it is stored. */
  decorate?(object: T): T
}

/** What else the author of a new object is judged by. */
export type NodeRestrictionFacts = {
  /** UID of its Node object; undefined: there is none. */
  readonly nodeUid?: string | undefined
  /** The common name that its certificate request asks for; undefined when the request cannot be read. */
  readonly commonName?: string | undefined
  /** Pods it mirrors now, and the most it may. */
  readonly mirrors?: { readonly count: number; readonly most: number } | undefined
}

export type NodeRestriction<T> = {
  facts?(node: string, object: T, needs: ResourceNeeds): Promise<NodeRestrictionFacts>
  /** Why `node` may not write the object; undefined when it may. `previous` is undefined for a new object. */
  problem(node: string, object: T, previous: T | undefined, facts: NodeRestrictionFacts): string | undefined
}

export type Subresource<T> =
  | SubresourceAction
  | SubresourcePart<T>
  | SubresourceView<T>
  | SubresourceReading
  | SubresourceConnection
  | SubresourceProxy

/** Something that is read of an object with GET, for as long as it comes: `log`. */
export type SubresourceReading = {
  readonly access: 'get'
  /** As discovery lists it. */
  readonly kind: string
  get(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse>
}

/** A connection into what the object describes: `exec`. WebSockets begin with GET, SPDY with POST. */
export type SubresourceConnection = {
  readonly access: 'connect'
  /** What its query is, as discovery lists it. */
  readonly kind: string
  connect(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse>
}

/** HTTP with what the object stands for: `proxy`, with any method, and any path below it. */
export type SubresourceProxy = {
  readonly access: 'proxy'
  /** What its query is, as discovery lists it. */
  readonly kind: string
  proxy(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse>
}

/** Something that is done with an object: it can only be created. */
export type SubresourceAction = {
  readonly access: 'create'
  /** What its body is, as discovery lists it; group and version where they are not those of the object. */
  readonly kind: string
  readonly group?: string
  readonly version?: string
  /** Schema of its body, for webhooks; undefined: they get no body that was sent as protobuf. */
  readonly body?: TSchema
  create(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse>
}

/** A part of the object that is read and written by itself. */
export type SubresourcePart<T> = {
  readonly access: 'update'
  /** What a write may touch beside metadata. */
  readonly writes: 'status' | 'spec'
  /** The stored object with this part as it is wanted. `now` is RFC 3339. */
  change(stored: T, wanted: T, now: string): AnyObject
  /** undefined: as for an update of the object. */
  prepareForUpdate?(old: T, now: T): AnyObject
  /** undefined: as for an update of the object. */
  validateUpdate?(old: T, now: T): readonly Problem[]
}

/** A part of the object that is read and written as an object of another kind: `scale`. */
export type SubresourceView<T> = {
  readonly access: 'view'
  readonly kind: string
  readonly group: string
  readonly version: string
  readonly schema: TSchema
  readonly reader: ObjectReader
  readonly table: TableOf<AnyObject>
  /** With the metadata of the object, without managedFields. */
  show(stored: T): AnyObject
  /** What is wrong with what a client wants. */
  problems(wanted: AnyObject): readonly Problem[]
  /** The stored object with what is wanted; undefined: its fields are put into the spec. */
  change?(stored: T, wanted: AnyObject): AnyObject
  /** The fields of the object that `wanted`, an object of the schema or a part of it, sets. */
  fields(wanted: { readonly spec?: unknown }): { readonly spec?: { readonly [field: string]: unknown } }
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

export type ResourceRoute = {
  readonly kind: 'resource'
  /** '': a method without a verb, which only a proxy takes, and only a rule for every verb permits (requestinfo.go). */
  readonly verb: Verb | ''
  readonly resource: KindStrategy
  /** '' for cluster-wide kinds, and for lists over all namespaces. */
  readonly namespace: string
  /** '' where the request is about a collection. */
  readonly name: string
  /** '' for the object itself. */
  readonly subresource: string
  /** What follows the subresource in the path, as the client wrote it; only where it is a proxy. */
  readonly rest?: string
}

/** A request that an extension server answers. */
export type AggregatedRoute = {
  readonly kind: 'aggregated'
  readonly apiService: StoredObject<'apiservices'>
  /** Made of its parts again: the server behind reads the path that was authorized. */
  readonly path: string
  /** '': a method without a verb. */
  readonly verb: Verb | ''
  readonly group: string
  readonly version: string
  /** '': discovery, or a description. */
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  /** '' where the request is about a collection. */
  readonly name: string
}

/** A permitted request about objects. */
export type ResourceRequest = {
  readonly route: ResourceRoute
  readonly identity: Identity
  /** Whose share of the streams to nodes it takes from. undefined: that of its identity. */
  readonly streamOwner?: string
  readonly query: URLSearchParams
  readonly accept: string | undefined
  readonly contentType: string | undefined
  /** Names the manager of the fields that are written where the query names none. */
  readonly userAgent?: string | undefined
  readonly readBody: () => Promise<Buffer>
  /** undefined: the request does not ask to leave HTTP. */
  readonly offered?: OfferedProtocols | undefined
  /** For a proxy. */
  readonly raw?: RawRequest | undefined
  /** Adds to the request's line in the audit log. */
  readonly annotate?: (key: string, value: string) => void
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal
}

/** A request as it came, to be passed on. */
export type RawRequest = {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  /** The other end of the client's connection. */
  readonly address: string | undefined
  /** undefined: it has none. */
  readonly body: Readable | undefined
}

/** What the client would speak on the connection instead of HTTP. */
export type OfferedProtocols = {
  /** The header Upgrade in lower case: `websocket`, `spdy/3.1`. */
  readonly upgrade: string
  /** What it would speak inside of that, in its order of preference. */
  readonly protocols: readonly string[]
}

export type ResourceNeeds = {
  readonly store: Store
  /** By what an object names; undefined: kinds are not resolved. */
  readonly kinds?: Pick<KindRegistry, 'ofKind'>
  /** Authorization, also of what a handler does on behalf of the requester. */
  readonly access: Authorizer
  /** Issues tokens of service accounts; undefined: there are none. */
  readonly tokens?: TokenIssuer
  readonly events: EventRecorder
  readonly clock: Clock
  readonly log: Log
  /** For lines that a client can cause; undefined: they are not limited. */
  readonly limited?: LimitedLog
  readonly random: () => number
  /** Default: randomUUID. */
  readonly newUID?: () => string
  readonly services: ServiceNetwork
  /** undefined: those of a fleet whose nodes reach no pods of each other. */
  readonly addressRules?: AddressRules
  /** undefined: quotas are not enforced. */
  readonly quotas?: QuotaLedger
  /** undefined: every pod is allowed. */
  readonly podSecurity?: PodSecurityGate
  /** undefined: no webhooks are called. */
  readonly webhooks?: WebhookGate
  /** undefined: no webhooks are called, and what needs one is refused. */
  readonly conversions?: ConversionGate
  readonly parseYaml: YamlParser
  /** The common name in a certificate request (PEM); undefined when it cannot be read. */
  readonly commonNameOf: (request: string) => string | undefined
  /** Which store this is; undefined: one that never takes checkpoints of nodes. */
  readonly origin?: StoreOrigin
  /** Whether checkpoints of nodes are accepted. undefined: no. */
  readonly checkpoints?: Pick<CheckpointWindow, 'isOpen'>
  /** Checks the proofs in checkpoints of nodes; undefined: nothing is proven. */
  readonly contentProver?: Pick<ContentProver, 'isProven' | 'isProvenRecord'>
  /** undefined: there is no way to nodes. */
  readonly sessions?: Pick<SessionBoard, 'open' | 'awaits' | 'connect'>
}

/** undefined where the kind has no such subresource; '' names none. */
export function subresourceOf<T extends AnyObject>(kind: KindStrategy<T>, name: string): Subresource<T> | undefined {
  return Object.hasOwn(kind.subresources, name) ? kind.subresources[name] : undefined
}

/** The subresource of this name, where it is an object of another kind. */
export function viewOf<T extends AnyObject>(kind: KindStrategy<T>, name: string): SubresourceView<T> | undefined {
  const row = subresourceOf(kind, name)
  return row?.access === 'view' ? row : undefined
}

/** The object as the clients of the kind see it. */
export function shownForm({ form }: KindStrategy, stored: AnyObject): AnyObject {
  return form === undefined ? stored : form.show(stored)
}

/** The object of a client as it is stored. */
export function storedForm({ form }: KindStrategy, object: AnyObject): AnyObject {
  return form === undefined ? object : form.read(object)
}

/** `status` of most kinds: the status, and the labels, annotations and finalizers that the kubelet writes with it. */
export const statusSubresource: SubresourcePart<AnyObject> = {
  access: 'update',
  writes: 'status',
  change: (stored, wanted) => replaceStatus(withWrittenMetadata(stored, wanted), wanted.status),
}

/** The object with this status; undefined: with none. */
export function replaceStatus(object: AnyObject, status: unknown): AnyObject {
  const { status: _, ...rest } = object
  return status === undefined ? rest : { ...rest, status }
}

/** The stored object with those metadata of `wanted` that a write of the status may change. */
export function withWrittenMetadata(stored: AnyObject, { metadata: wanted }: AnyObject): AnyObject {
  const { labels, annotations, finalizers } = wanted
  const { labels: _, annotations: __, finalizers: ___, ...kept } = stored.metadata
  const metadata = {
    ...kept,
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(finalizers && { finalizers }),
  }
  return { ...stored, metadata }
}

/** Puts the object by the strategy of its kind, within the quotas of its namespace. Throws the ApiError of a refusal. */
export function writeBy(
  kind: KindStrategy,
  object: AnyObject,
  old: AnyObject | undefined,
  needs: ResourceNeeds,
  put: Put<AnyObject>,
): Promise<AnyObject> {
  const write: Put<AnyObject> = (one) => kind.write?.(one, old, needs, put) ?? put(one)
  return needs.quotas === undefined ? write(object) : needs.quotas.charge(kind, object, old, write)
}
