/** API discovery: the kinds that are served, here and by extension servers, in the plain and in the aggregated form. */
import { createHash } from 'node:crypto'
import type { AnyObject } from '../../api/meta.ts'
import { type APIService, registrationGroup, registrationName } from '../../api/registration/api-service.ts'
import {
  type GroupVersion,
  inGroupOrder,
  localPriority,
  type OrderedGroup,
  type Priority,
} from '../../api/registration/group-order.ts'
import { apiVersionOf, type Resource } from '../../api/resources.ts'
import type { DiscoveredVersion, DiscoveryNeeds } from './aggregator/discovery-needs.ts'
import { componentKind } from './figures/component-routes.ts'
import { usageGroup, usageKinds, usageVersion } from './figures/usage-routes.ts'
import type { KindRegistry, KindStrategy, Subresource } from './handlers/strategy.ts'
import { reviewKinds } from './reviews/review-kinds.ts'
import { type ApiResponse, objectAnswer } from './wire/answers.ts'
import { aggregatedDiscovery } from './wire/content-negotiation.ts'

const objectVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const
/** Verbs of a kind whose definition is being deleted. */
const endingVerbs = ['delete', 'deletecollection', 'get', 'list', 'watch'] as const
const verbsByAccess: { readonly [A in Subresource<AnyObject>['access']]: readonly string[] } = {
  create: ['create'],
  update: ['get', 'patch', 'update'],
  view: ['get', 'patch', 'update'],
  get: ['get'],
  connect: ['create', 'get'],
  proxy: ['create', 'delete', 'get', 'patch', 'update'],
}

/** Undefined where the path is not one of discovery's. */
export function discoveryAnswer(
  path: string,
  accept: string | undefined,
  needs: DiscoveryNeeds,
): ApiResponse | undefined {
  const aggregated = aggregatedDiscovery(accept)
  const [, root, group, version, ...rest] = path.replace(/\/$/, '').split('/')
  if (rest.length > 0) return undefined
  if (root === 'api' && version === undefined) {
    if (group !== undefined) return listAnswer('', group, needs.kinds)
    if (aggregated === undefined) return objectAnswer(coreVersions)
    return aggregatedAnswer(aggregated, servedGroups(needs).filter(isCore), needs)
  }
  if (root !== 'apis') return undefined
  if (group !== undefined && version !== undefined) return listAnswer(group, version, needs.kinds)
  const groups = servedGroups(needs).filter((one) => !isCore(one))
  if (group === undefined)
    return aggregated ? aggregatedAnswer(aggregated, groups, needs) : objectAnswer(groupList(groups))
  const found = groups.find((one) => one.group === group)
  return found && objectAnswer({ ...groupOf(found), kind: 'APIGroup', apiVersion: 'v1' })
}

/** Every path discovery answers, for the list at `/`. */
export function discoveryPaths(needs: DiscoveryNeeds): string[] {
  const groups = servedGroups(needs)
    .filter((one) => !isCore(one))
    .flatMap(({ group, versions }) => [`/apis/${group}`, ...versions.map(({ version }) => `/apis/${group}/${version}`)])
  return ['/api', '/api/v1', '/apis', ...groups]
}

/** The versions of groups that the fleet serves by itself, each once. */
export function localGroupVersions(kinds: KindRegistry): readonly GroupVersion[] {
  const all = [...kinds.served, ...computed].map(({ group, version }) => ({ group, version }))
  return [...new Map(all.map((one) => [registrationName(one), one])).values()]
}

/** `apiService`: of its extension server; undefined: the fleet serves it by itself. */
type ServedVersion = GroupVersion & Priority & { readonly apiService?: APIService }
type ServedGroup = OrderedGroup<ServedVersion>

function servedGroups({ kinds, apiServices }: DiscoveryNeeds): readonly ServedGroup[] {
  const stated = new Map([...(apiServices?.all() ?? [])].map((one) => [one.metadata.name ?? '', one]))
  const remote = apiServices?.remotes() ?? []
  const elsewhere = new Set(remote.map(({ metadata }) => metadata.name))
  const local = localGroupVersions(kinds).filter((one) => !elsewhere.has(registrationName(one)))
  const groups = inGroupOrder<ServedVersion>([
    ...local.map((one) => ({ ...one, ...(stated.get(registrationName(one))?.spec ?? localPriority(one)) })).map(plain),
    ...remote.map((apiService) => ({ ...plain(apiService.spec), apiService })),
  ])
  // Kubernetes lists the group of APIServices before all others; it has none itself.
  return [...groups.filter(isRegistration), ...groups.filter((one) => !isRegistration(one))]
}

function plain({ group = '', version = '', groupPriorityMinimum, versionPriority }: Partial<GroupVersion> & Priority) {
  return { group, version, groupPriorityMinimum, versionPriority }
}

function isRegistration({ group }: ServedGroup): boolean {
  return group === registrationGroup
}

function isCore({ group }: ServedGroup): boolean {
  return group === ''
}

const coreVersions = {
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [],
}

function groupList(groups: readonly ServedGroup[]) {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupOf) }
}

function groupOf({ group, versions: served }: ServedGroup) {
  const versions = served.map(({ version }) => ({ groupVersion: `${group}/${version}`, version }))
  return { name: group, versions, preferredVersion: versions[0] }
}

function listAnswer(group: string, version: string, kinds: KindRegistry): ApiResponse | undefined {
  const served = servedIn(group, kinds).filter((resource) => resource.version === version)
  const others = computed.filter((one) => one.group === group && one.version === version)
  if (served.length + others.length === 0) return undefined
  return objectAnswer({
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf({ group, version }),
    resources: [...served.flatMap((resource) => entriesOf(resource, kinds)), ...others.map(computedEntry)],
  })
}

function entriesOf(resource: KindStrategy, kinds: KindRegistry) {
  const { name, singular, namespaced, kind, shortNames, categories } = resource
  const own = {
    name,
    singularName: singular,
    namespaced,
    kind,
    verbs: objectVerbsOf(resource),
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    storageVersionHash: storageVersionHash(kinds.get(resource.id) ?? resource),
  }
  const subresources = Object.entries(resource.subresources).map(([subresource, row]) => ({
    name: `${name}/${subresource}`,
    singularName: '',
    namespaced,
    ...groupVersionOf(row),
    kind: row.access === 'update' ? kind : row.kind,
    verbs: verbsOf(row),
  }))
  return [own, ...subresources]
}

/** Changes with the version in which objects are stored (StorageVersionHash, apiserver pkg/endpoints/discovery). */
function storageVersionHash({ group, version, kind }: Pick<Resource, 'group' | 'version' | 'kind'>): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}

function aggregatedAnswer(
  version: 'v2' | 'v2beta1',
  groups: readonly ServedGroup[],
  needs: DiscoveryNeeds,
): ApiResponse {
  return {
    kind: 'object',
    code: 200,
    contentType: `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    body: {
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.k8s.io/${version}`,
      metadata: {},
      items: groups.map((group) => aggregatedGroup(group, needs)),
    },
  }
}

/** What is computed when it is asked for, beside the kinds of objects. */
type Computed = Pick<Resource, 'name' | 'singular' | 'namespaced' | 'kind' | 'group' | 'version'> & {
  readonly verbs: readonly string[]
  readonly shortNames?: readonly string[]
}

const computed: readonly Computed[] = [
  componentKind,
  ...usageKinds.map((kind) => ({ ...kind, group: usageGroup, version: usageVersion, verbs: ['get', 'list'] })),
  ...Object.values<Resource>(reviewKinds).map((kind) => ({ ...kind, verbs: ['create'] })),
]

const computedEntry = ({ name, singular, namespaced, kind, verbs, shortNames = [] }: Computed) => ({
  name,
  singularName: singular,
  namespaced,
  kind,
  verbs,
  ...(shortNames.length > 0 && { shortNames }),
})

const aggregatedComputed = ({
  name,
  singular,
  namespaced,
  kind,
  group,
  version,
  verbs,
  shortNames = [],
}: Computed) => ({
  resource: name,
  responseKind: { group, version, kind },
  scope: namespaced ? 'Namespaced' : 'Cluster',
  singularResource: singular,
  verbs,
  ...(shortNames.length > 0 && { shortNames }),
})

function aggregatedGroup({ group, versions }: ServedGroup, { kinds, extensions }: DiscoveryNeeds) {
  const own = (version: string): DiscoveredVersion => ({
    freshness: 'Current',
    resources: [
      ...servedIn(group, kinds)
        .filter((resource) => resource.version === version)
        .map(aggregatedResource),
      ...computed.filter((one) => one.group === group && one.version === version).map(aggregatedComputed),
    ],
  })
  return {
    metadata: group === '' ? {} : { name: group },
    versions: versions.map(({ version, apiService }) => ({
      version,
      ...(apiService === undefined ? own(version) : (extensions?.versionOf(apiService) ?? notKnown)),
    })),
  }
}

const notKnown: DiscoveredVersion = { freshness: 'Stale', resources: [] }

function objectVerbsOf({ defined, hasNoCollectionDeletion }: KindStrategy): readonly string[] {
  if (hasNoCollectionDeletion) return objectVerbs.filter((verb) => verb !== 'deletecollection')
  return defined?.isTerminating ? endingVerbs : objectVerbs
}

function aggregatedResource(resource: KindStrategy) {
  const { name, singular, kind, group, version, namespaced, shortNames, categories } = resource
  return {
    resource: name,
    responseKind: { group, version, kind },
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: objectVerbsOf(resource),
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    subresources: Object.entries(resource.subresources).map(([subresource, row]) => ({
      subresource,
      responseKind: { group, version, kind, ...(row.access !== 'update' && bodyKind(row)) },
      verbs: verbsOf(row),
    })),
  }
}

function bodyKind(row: Exclude<Subresource<AnyObject>, { readonly access: 'update' }>) {
  return { kind: row.kind, ...groupVersionOf(row) }
}

/** Group and version of the subresource's body, where they differ from those of the object. */
function groupVersionOf(row: Subresource<AnyObject>) {
  const { group, version } = row.access === 'create' || row.access === 'view' ? row : {}
  return { ...(group !== undefined && { group }), ...(version !== undefined && { version }) }
}

function verbsOf({ access }: Subresource<AnyObject>): readonly string[] {
  return verbsByAccess[access]
}

function servedIn(group: string, kinds: KindRegistry): KindStrategy[] {
  return kinds.served.filter((resource) => resource.group === group)
}
