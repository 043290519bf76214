/** What do we serve? The lists kubectl learns our kinds from, in their plain and in their aggregated form. */
import { apiVersionOf, type Resource, resources } from '../../api/resources.ts'
import { usageGroup, usageKinds, usageVersion } from './figures/usage-routes.ts'
import { isErrand } from './routes.ts'
import { type Answer, objectAnswer } from './wire/answers.ts'
import { aggregatedDiscovery } from './wire/content-negotiation.ts'

const objectVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const
const subresourceVerbs = ['get', 'patch', 'update'] as const

/** Undefined where the path is none of discovery's. */
export function discoveryAnswer(path: string, accept: string | undefined): Answer | undefined {
  const aggregated = aggregatedDiscovery(accept)
  const [, root, group, version, ...rest] = path.replace(/\/$/, '').split('/')
  if (rest.length > 0) return undefined
  if (root === 'api' && version === undefined) {
    if (group !== undefined) return listAnswer('', group)
    return aggregated ? aggregatedAnswer(aggregated, [coreGroup]) : objectAnswer(coreVersions)
  }
  if (root !== 'apis') return undefined
  if (group === undefined) return aggregated ? aggregatedAnswer(aggregated, namedGroups()) : objectAnswer(groupList())
  if (version !== undefined) return group === usageGroup ? usageList(version) : listAnswer(group, version)
  return namedGroups().includes(group)
    ? objectAnswer({ ...groupOf(group), kind: 'APIGroup', apiVersion: 'v1' })
    : undefined
}

/** Every path discovery answers, for the list at `/`. */
export function discoveryPaths(): string[] {
  const groups = namedGroups().flatMap((group) => [`/apis/${group}`, `/apis/${group}/${versionOf(group)}`])
  return ['/api', '/api/v1', '/apis', ...groups]
}

const coreGroup = ''

const coreVersions = {
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [],
}

function groupList() {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: namedGroups().map(groupOf) }
}

function groupOf(group: string) {
  const version = { groupVersion: `${group}/${versionOf(group)}`, version: versionOf(group) }
  return { name: group, versions: [version], preferredVersion: version }
}

function listAnswer(group: string, version: string): Answer | undefined {
  const served = servedIn(group).filter((resource) => resource.version === version)
  const [first] = served
  if (first === undefined) return undefined
  return objectAnswer({
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf(first),
    resources: served.flatMap(entriesOf),
  })
}

function entriesOf(resource: Resource) {
  const { name, singular, namespaced, kind, shortNames, categories } = resource
  const own = {
    name,
    singularName: singular,
    namespaced,
    kind,
    verbs: objectVerbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
  }
  const subresources = resource.subresources.map((subresource) => ({
    name: `${name}/${subresource}`,
    singularName: '',
    namespaced,
    // Of another group than the kind it belongs to: drain looks for just this before it evicts.
    ...(subresource === 'eviction' && { group: 'policy', version: 'v1' }),
    kind: kindOf(resource, subresource),
    verbs: verbsOf(subresource),
  }))
  return [own, ...subresources]
}

function aggregatedAnswer(version: 'v2' | 'v2beta1', groups: readonly string[]): Answer {
  return {
    kind: 'object',
    code: 200,
    contentType: `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
    body: {
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.k8s.io/${version}`,
      metadata: {},
      items: groups.map(aggregatedGroup),
    },
  }
}

/** Computed when asked for, and only ever read. */
const usageVerbs = ['get', 'list'] as const

function usageList(version: string): Answer | undefined {
  if (version !== usageVersion) return undefined
  return objectAnswer({
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: `${usageGroup}/${usageVersion}`,
    resources: usageKinds.map(({ name, singular, namespaced, kind }) => ({
      name,
      singularName: singular,
      namespaced,
      kind,
      verbs: usageVerbs,
    })),
  })
}

const aggregatedUsage = usageKinds.map(({ name, singular, namespaced, kind }) => ({
  resource: name,
  responseKind: { group: usageGroup, version: usageVersion, kind },
  scope: namespaced ? 'Namespaced' : 'Cluster',
  singularResource: singular,
  verbs: usageVerbs,
}))

function aggregatedGroup(group: string) {
  const resources = group === usageGroup ? aggregatedUsage : servedIn(group).map(aggregatedResource)
  return {
    metadata: group === coreGroup ? {} : { name: group },
    versions: [{ version: versionOf(group), freshness: 'Current', resources }],
  }
}

function aggregatedResource(resource: Resource) {
  const { name, singular, namespaced, shortNames, categories } = resource
  return {
    resource: name,
    responseKind: responseKind(resource, resource.kind),
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: objectVerbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    subresources: resource.subresources.map((subresource) => ({
      subresource,
      responseKind: responseKind(
        subresource === 'eviction' ? { group: 'policy', version: 'v1' } : resource,
        kindOf(resource, subresource),
      ),
      verbs: verbsOf(subresource),
    })),
  }
}

function responseKind({ group, version }: Pick<Resource, 'group' | 'version'>, kind: string) {
  return { group, version, kind }
}

function kindOf(resource: Resource, subresource: string): string {
  if (subresource === 'binding') return 'Binding'
  if (subresource === 'checkpoint') return 'NodeCheckpoint'
  return subresource === 'eviction' ? 'Eviction' : resource.kind
}

function verbsOf(subresource: string): readonly string[] {
  return isErrand(subresource) ? ['create'] : subresourceVerbs
}

function servedIn(group: string): Resource[] {
  return Object.values(resources).filter((resource) => resource.group === group)
}

function namedGroups(): string[] {
  const groups = Object.values(resources).map(({ group }) => group)
  return [...new Set([...groups, usageGroup])].filter((group) => group !== coreGroup).sort()
}

/** Each of our groups has one version so far. */
function versionOf(group: string): string {
  return group === usageGroup ? usageVersion : (servedIn(group)[0]?.version ?? 'v1')
}
