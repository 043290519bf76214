/** What extension servers report that they serve, read as documents of strangers: bounded, and with known fields only. */
import { decode } from '../../../api/decode.ts'
import type { GroupVersion } from '../../../api/registration/group-order.ts'
import type { Described } from '../../../api/schema.ts'
import { bool, field, list, mapOf, object, optional, text } from '../../../api/schema.ts'

const KindSchema = object({
  group: field(1, optional(text)),
  version: field(2, optional(text)),
  kind: field(3, optional(text)),
})
const SubresourceSchema = object({
  subresource: field(1, text),
  responseKind: field(2, optional(KindSchema)),
  acceptedTypes: field(3, optional(list(KindSchema))),
  verbs: field(4, optional(list(text))),
})
const ResourceSchema = object({
  resource: field(1, text),
  responseKind: field(2, optional(KindSchema)),
  scope: field(3, optional(text)),
  singularResource: field(4, optional(text)),
  verbs: field(5, optional(list(text))),
  shortNames: field(6, optional(list(text))),
  categories: field(7, optional(list(text))),
  subresources: field(8, optional(list(SubresourceSchema))),
})
export type ExtensionResource = Described<typeof ResourceSchema>

const GroupsSchema = object({
  items: field(
    1,
    optional(
      list(
        object({
          metadata: field(1, optional(object({ name: field(1, optional(text)) }))),
          versions: field(
            2,
            optional(list(object({ version: field(1, text), resources: field(2, optional(list(ResourceSchema))) }))),
          ),
        }),
      ),
    ),
  ),
})

const ListSchema = object({
  resources: field(
    1,
    optional(
      list(
        object({
          name: field(1, text),
          singularName: field(2, optional(text)),
          namespaced: field(3, optional(bool)),
          kind: field(4, optional(text)),
          group: field(5, optional(text)),
          version: field(6, optional(text)),
          verbs: field(7, optional(list(text))),
          shortNames: field(8, optional(list(text))),
          categories: field(9, optional(list(text))),
        }),
      ),
    ),
  ),
})
type Listed = NonNullable<Described<typeof ListSchema>['resources']>[number]

/** All clients are sent them. */
const mostResources = 500

/** What an aggregated list has of this version; undefined: the list is invalid, or lacks it. */
export function resourcesInGroups(
  document: unknown,
  { group, version }: GroupVersion,
): readonly ExtensionResource[] | undefined {
  const decoded = decode(GroupsSchema, document)
  if (!decoded.ok) return undefined
  const found = decoded.value.items?.find(({ metadata }) => metadata?.name === group)
  const resources = found?.versions?.find((one) => one.version === version)?.resources
  // Clients of some versions fail where it is missing (kubernetes issue 118361).
  return resources?.slice(0, mostResources).map((one) => ({ responseKind: {}, ...one }))
}

/** The same of an APIResourceList of this version (ConvertGroupVersionIntoToDiscovery). */
export function resourcesInList(
  document: unknown,
  { group, version }: GroupVersion,
): readonly ExtensionResource[] | undefined {
  const decoded = decode(ListSchema, document)
  if (!decoded.ok || decoded.value.resources === undefined) return undefined
  const all = decoded.value.resources.slice(0, mostResources)
  const kindOf = (one: Listed) => ({ group: one.group ?? group, version: one.version ?? version, kind: one.kind ?? '' })
  return all
    .filter(({ name }) => !name.includes('/'))
    .map((one) => ({
      resource: one.name,
      responseKind: kindOf(one),
      scope: one.namespaced ? 'Namespaced' : 'Cluster',
      singularResource: one.singularName ?? '',
      verbs: one.verbs ?? [],
      ...(one.shortNames && { shortNames: one.shortNames }),
      ...(one.categories && { categories: one.categories }),
      subresources: all
        .filter(({ name }) => name.startsWith(`${one.name}/`))
        .map((sub) => ({
          subresource: sub.name.slice(one.name.length + 1),
          responseKind: kindOf(sub),
          verbs: sub.verbs ?? [],
        })),
    }))
}

const IndexSchema = object({
  paths: field(1, optional(mapOf(object({ serverRelativeURL: field(1, optional(text)) })))),
})
const longestHash = 128

/** The hash of the description of this version in an index of OpenAPI v3, '' where it has none; undefined: it has no description. */
export function descriptionHash(document: unknown, { group, version }: GroupVersion): string | undefined {
  const decoded = decode(IndexSchema, document)
  if (!decoded.ok) return undefined
  const { paths = {} } = decoded.value
  const path = `apis/${group}/${version}`
  const found = Object.hasOwn(paths, path) ? paths[path] : undefined
  if (found === undefined) return undefined
  const hash = /[?&]hash=([A-Za-z0-9_-]+)/.exec(found.serverRelativeURL ?? '')?.[1] ?? ''
  return hash.slice(0, longestHash)
}
