/** API discovery: the kinds that are served, in the plain and in the aggregated form. */
import type { AnyObject } from '../../api/meta.ts'
import { apiVersionOf, type Resource } from '../../api/resources.ts'
import { componentKind } from './figures/component-routes.ts'
import { usageGroup, usageKinds, usageVersion } from './figures/usage-routes.ts'
import type { KindRegistry, KindStrategy, Subresource } from './handlers/strategy.ts'
import { reviewKinds } from './reviews/review-kinds.ts'
import { type ApiResponse, objectAnswer } from './wire/answers.ts'
import { aggregatedDiscovery } from './wire/content-negotiation.ts'

const objectVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const
/** Of a kind whose definition is being deleted. */
const endingVerbs = ['delete', 'deletecollection', 'get', 'list', 'watch'] as const
const verbsByAccess: { readonly [A in Subresource<AnyObject>['access']]: readonly string[] } = {
  create: ['create'],
  update: ['get', 'patch', 'update'],
  view: ['get', 'patch', 'update'],
  get: ['get'],
  connect: ['create', 'get'],
  proxy: ['create', 'delete', 'get', 'patch', 'update'],
}

/** Undefined where the path is none of discovery's. */
export function discoveryAnswer(
  path: string,
  accept: string | undefined,
  kinds: KindRegistry,
): ApiResponse | undefined {
  const aggregated = aggregatedDiscovery(accept)
  const [, root, group, version, ...rest] = path.replace(/\/$/, '').split('/')
  if (rest.length > 0) return undefined
  if (root === 'api' && version === undefined) {
    if (group !== undefined) return listAnswer('', group, kinds)
    return aggregated ? aggregatedAnswer(aggregated, [coreGroup], kinds) : objectAnswer(coreVersions)
  }
  if (root !== 'apis') return undefined
  const groups = namedGroups(kinds)
  if (group === undefined)
    return aggregated ? aggregatedAnswer(aggregated, groups, kinds) : objectAnswer(groupList(kinds))
  if (version !== undefined) return listAnswer(group, version, kinds)
  return groups.includes(group)
    ? objectAnswer({ ...groupOf(group, kinds), kind: 'APIGroup', apiVersion: 'v1' })
    : undefined
}

/** Every path discovery answers, for the list at `/`. */
export function discoveryPaths(kinds: KindRegistry): string[] {
  const groups = namedGroups(kinds).flatMap((group) => [
    `/apis/${group}`,
    ...versionsOf(group, kinds).map((version) => `/apis/${group}/${version}`),
  ])
  return ['/api', '/api/v1', '/apis', ...groups]
}

const coreGroup = ''

const coreVersions = {
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [],
}

function groupList(kinds: KindRegistry) {
  const groups = namedGroups(kinds).map((group) => groupOf(group, kinds))
  return { kind: 'APIGroupList', apiVersion: 'v1', groups }
}

function groupOf(group: string, kinds: KindRegistry) {
  const versions = versionsOf(group, kinds).map((version) => ({ groupVersion: `${group}/${version}`, version }))
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
    resources: [...served.flatMap(entriesOf), ...others.map(computedEntry)],
  })
}

function entriesOf(resource: KindStrategy) {
  const { name, singular, namespaced, kind, shortNames, categories } = resource
  const own = {
    name,
    singularName: singular,
    namespaced,
    kind,
    verbs: objectVerbsOf(resource),
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
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

function aggregatedAnswer(version: 'v2' | 'v2beta1', groups: readonly string[], kinds: KindRegistry): ApiResponse {
  return {
    kind: 'object',
    code: 200,
    contentType: `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    body: {
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.k8s.io/${version}`,
      metadata: {},
      items: groups.map((group) => aggregatedGroup(group, kinds)),
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

function aggregatedGroup(group: string, kinds: KindRegistry) {
  const resourcesIn = (version: string) => [
    ...servedIn(group, kinds)
      .filter((resource) => resource.version === version)
      .map(aggregatedResource),
    ...computed.filter((one) => one.group === group && one.version === version).map(aggregatedComputed),
  ]
  return {
    metadata: group === coreGroup ? {} : { name: group },
    versions: versionsOf(group, kinds).map((version) => ({
      version,
      freshness: 'Current',
      resources: resourcesIn(version),
    })),
  }
}

function objectVerbsOf({ defined }: KindStrategy): readonly string[] {
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

/** Of what is in its body, where they are not those of the object. */
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

function namedGroups(kinds: KindRegistry): string[] {
  const own = [...kinds.served.filter(({ defined }) => defined === undefined), ...computed]
  // As their priorities have it in Kubernetes: kubectl takes the first kind of an ambiguous name.
  return [...new Set([...namesOf(own), ...namesOf(kinds.served)])]
}

function namesOf(kinds: readonly { readonly group: string }[]): string[] {
  return [...new Set(kinds.map(({ group }) => group))].filter((group) => group !== coreGroup).sort()
}

/** The newest first, which clients prefer (CompareKubeAwareVersionStrings, apimachinery util/version). */
function versionsOf(group: string, kinds: KindRegistry): readonly string[] {
  const all = [...servedIn(group, kinds), ...computed.filter((one) => one.group === group)]
  const versions = [...new Set(all.map(({ version }) => version))]
  return versions.sort((a, b) => rankOf(b) - rankOf(a) || (a < b ? -1 : 1))
}

/** `v2` is before `v1`, and that before any `v1beta1`, `v2alpha1`; other names come after these. */
function rankOf(version: string): number {
  const [text, major = '0', stage, minor = '0'] = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/.exec(version) ?? []
  if (text === undefined) return -1
  const stages = ['alpha', 'beta']
  return (stage === undefined ? 2 : stages.indexOf(stage)) * 1e6 + Number(major) * 1e3 + Number(minor)
}
