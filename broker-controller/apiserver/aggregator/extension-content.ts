/**
 * Deletes what extension servers have in a namespace (pkg/controller/namespace/deletion/namespaced_resources_deleter.go). A server that fails
 * does not keep the others from being asked.
 */
import { decode } from '../../../api/decode.ts'
import { inGroupOrder } from '../../../api/registration/group-order.ts'
import { type Described, field, list, object, optional, text } from '../../../api/schema.ts'
import { isObject } from '../../../api/text/json.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { inParallel } from '../../../daemon/in-parallel.ts'
import { parseJsonBody } from '../wire/request-body.ts'
import type { ApiServices, StoredApiService } from './api-services.ts'
import type { ExtensionDiscovery } from './discovery-needs.ts'
import type { ExtensionResource } from './extension-documents.ts'
import { type AskOptions, boundedReason, type ExtensionAnswer, type ExtensionServers } from './extension-servers.ts'
import type { NamespaceContent, RemainingContent } from './namespace-content.ts'

export interface ExtensionContent {
  /** What is left after it. Never rejects. */
  remove(namespace: string, signal: AbortSignal): Promise<NamespaceContent>
}

export type ExtensionContentNeeds = {
  readonly apiServices: Pick<ApiServices, 'remotes'>
  readonly discovery: Pick<ExtensionDiscovery, 'versionOf'>
  readonly servers: Pick<ExtensionServers, 'ask'>
}

const serversAtOnce = 8
const resourcesAtOnce = 4
/** Each time that the namespace is looked at. */
const mostObjects = 100
const mostBytes = 1024 * 1024
const listForm = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'
const deleteOptions = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background' }

export function extensionContent({ apiServices, discovery, servers }: ExtensionContentNeeds): ExtensionContent {
  return {
    async remove(namespace, signal) {
      const { versions, undiscovered } = deletableVersions(apiServices.remotes(), discovery)
      const remaining: RemainingContent[] = []
      const failures: string[] = []
      await inParallel(versions, serversAtOnce, async ({ apiService, resources }) => {
        // The first failure of a server ends what it is asked: one that hangs is waited for once.
        const emptying = inParallel(resources, resourcesAtOnce, async ({ resource, verbs = [] }) => {
          if (signal.aborted) return
          const { group = '', version = '' } = apiService.spec
          const path = `/apis/${group}/${version}/namespaces/${namespace}/${encodeURIComponent(resource)}`
          const kind = { name: resource, group }
          try {
            const finalizers = await emptied({
              path,
              verbs,
              ask: (at, more) => servers.ask(apiService, at, { ...more, signal }),
            })
            if (finalizers.length > 0) remaining.push({ kind, finalizers })
          } catch (error) {
            throw new Error(`${resource}.${group}: ${boundedReason(messageOf(error))}`)
          }
        })
        await emptying.catch((error) => void failures.push(messageOf(error)))
      })
      return { remaining, failures, undiscovered }
    },
  }
}

type DeletableVersion = { readonly apiService: StoredApiService; readonly resources: readonly ExtensionResource[] }

/**
 * Each kind in the first version of its group. A version that does not answer counts where its server had objects to delete when it did, or
 * has never answered: one of figures alone, such as `external.metrics.k8s.io`, holds up no namespace.
 */
function deletableVersions(
  apiServices: readonly StoredApiService[],
  discovery: ExtensionContentNeeds['discovery'],
): { readonly versions: readonly DeletableVersion[]; readonly undiscovered: readonly string[] } {
  const undiscovered: string[] = []
  const listed = new Set<string>()
  const all = apiServices.map((apiService) => {
    const { group = '', version = '', groupPriorityMinimum, versionPriority } = apiService.spec
    return { apiService, group, version, groupPriorityMinimum, versionPriority }
  })
  const versions = inGroupOrder(all).flatMap(({ versions: ordered }) =>
    ordered.flatMap(({ apiService, group, version }) => {
      const { freshness, resources } = discovery.versionOf(apiService)
      const deletable = resources.filter(({ scope, verbs }) => scope === 'Namespaced' && verbs?.includes('delete'))
      if (freshness === 'Stale') {
        if (deletable.length > 0 || resources.length === 0) undiscovered.push(`${group}/${version}`)
        return []
      }
      const own = deletable.filter(({ resource }) => !listed.has(`${resource}.${group}`))
      for (const { resource } of own) listed.add(`${resource}.${group}`)
      return own.length === 0 ? [] : [{ apiService, resources: own }]
    }),
  )
  return { versions, undiscovered }
}

type Collection = {
  readonly path: string
  readonly verbs: readonly string[]
  readonly ask: (path: string, more: Omit<AskOptions, 'signal'>) => Promise<ExtensionAnswer>
}

/** The finalizers of each object that is left. Rejects with why they cannot be listed or deleted. */
async function emptied(collection: Collection): Promise<readonly (readonly string[])[]> {
  const found = await listed(collection)
  if (found.length === 0) return []
  await deleteAll(collection, found)
  return (await listed(collection)).map(({ metadata }) => metadata.finalizers ?? [])
}

const ObjectsSchema = object({
  items: field(
    1,
    optional(
      list(
        object({
          metadata: field(1, object({ name: field(1, text), finalizers: field(14, optional(list(text))) })),
        }),
      ),
    ),
  ),
})
type Listed = NonNullable<Described<typeof ObjectsSchema>['items']>

/** The first of them. A kind that cannot be listed has none, as for Kubernetes. */
async function listed({ path, verbs, ask }: Collection): Promise<Listed> {
  if (!verbs.includes('list')) return []
  const answer = await ask(`${path}?limit=${mostObjects}`, { accept: listForm, mostBytes })
  if (isUnsupported(answer)) return []
  const decoded = decode(ObjectsSchema, bodyOf(answer))
  if (!decoded.ok) throw new Error('its list cannot be read')
  return (decoded.value.items ?? []).slice(0, mostObjects)
}

/** Together where the server can, else each by itself. */
async function deleteAll({ path, verbs, ask }: Collection, found: Listed): Promise<void> {
  const remove = (at: string) =>
    ask(at, { method: 'DELETE', body: deleteOptions, accept: 'application/json', mostBytes })
  if (verbs.includes('deletecollection')) {
    const answer = await remove(path)
    if (!isUnsupported(answer)) return void bodyOf(answer)
  }
  for (const {
    metadata: { name },
  } of found) {
    const answer = await remove(`${path}/${encodeURIComponent(name)}`)
    if (!isUnsupported(answer)) bodyOf(answer)
  }
}

/** Or it is gone. */
function isUnsupported({ code }: ExtensionAnswer): boolean {
  return code === 404 || code === 405
}

/** Throws what the server states as its reason. */
function bodyOf({ code, body }: ExtensionAnswer): unknown {
  if (code >= 200 && code < 300) return code === 204 || body.length === 0 ? undefined : parseJsonBody(body)
  let status: unknown
  try {
    status = parseJsonBody(body)
  } catch {
    // It is not a Status.
  }
  const message = isObject(status) && typeof status['message'] === 'string' ? status['message'] : ''
  throw new Error(message === '' ? `its server answers with status ${code}` : message)
}
