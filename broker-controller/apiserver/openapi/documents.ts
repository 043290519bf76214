/**
 * The OpenAPI documents of the kinds that are served: 3.0 for each group and version, 2.0 in one. Each is built when it is first asked for,
 * one at a time, and kept as gzip.
 */
import { setImmediate } from 'node:timers/promises'
import { apiVersionOf, type Resource } from '../../../api/resources.ts'
import { systemClock } from '../../../daemon/clock.ts'
import type { ExtensionDescription } from '../aggregator/extension-description.ts'
import { hashOf, type PackedDocument, packedDocument } from '../aggregator/packed-document.ts'
import type { KindRegistry } from '../handlers/strategy.ts'
import { inPieces } from '../handlers/turns.ts'
import { reviewKinds } from '../reviews/review-kinds.ts'
import { type DocumentParts, documentParts, jsonDocument } from './document-parts.ts'
import { withDescriptions } from './merged-descriptions.ts'
import type { DescribedKind } from './operations.ts'
import { protobufDocument } from './protobuf-document.ts'
import type { JsonSchema } from './type-schemas.ts'

export type OpenApiDocuments = {
  /** `/openapi/v3`: where the document of each group and version is, with its hash. */
  readonly index: () => Promise<PackedDocument>
  /** `api/v1`, `apis/policy/v1`; undefined where nothing is served there. */
  readonly ofGroup: (path: string) => Promise<PackedDocument> | undefined
  /** `/openapi/v2` in JSON, with the descriptions of extension servers in this order. */
  readonly v2: (extensions?: readonly ExtensionDescription[]) => Promise<PackedDocument>
  /** The same in protobuf. */
  readonly v2Protobuf: (extensions?: readonly ExtensionDescription[]) => Promise<PackedDocument>
}

const byKinds = new WeakMap<KindRegistry['served'], OpenApiDocuments>()

/** Documents of the kinds that are served now; they stay the same until the kinds change. `version`: of the program. */
export function openApiDocuments(kinds: KindRegistry, version: string): OpenApiDocuments {
  const { served } = kinds
  const known = byKinds.get(served)
  if (known !== undefined) return known
  const documents = makeDocuments(groupsOf(served), { title: 'Bramble', version })
  byKinds.set(served, documents)
  return documents
}

type Info = { readonly title: string; readonly version: string }
type Groups = ReadonlyMap<string, readonly DescribedKind[]>

function makeDocuments(groups: Groups, info: Info): OpenApiDocuments {
  const built = new Map<string, { readonly state: string; readonly document: Promise<PackedDocument> }>()
  /** Another state takes the place of the one before. */
  const once = (name: string, state: string, build: () => Promise<PackedDocument>) => {
    const present = built.get(name)
    if (present?.state === state) return present.document
    const made = { state, document: build() }
    built.set(name, made)
    made.document.catch(() => built.get(name) === made && built.delete(name))
    return made.document
  }
  const ofGroup = (path: string) => {
    const group = groups.get(path)
    return group && once(`v3 ${path}`, '', () => documentOfGroup(group, info))
  }
  const whole = (
    form: string,
    extensions: readonly ExtensionDescription[],
    write: (parts: DocumentParts) => Promise<PackedDocument>,
  ) =>
    once(form, extensions.map(({ hash }) => hash).join(' '), () =>
      inOrder(async () =>
        write(await withDescriptions(await documentParts([...groups.values()].flat(), 'v2'), extensions)),
      ),
    )
  const head = { swagger: '2.0', info }
  return {
    ofGroup,
    index: () => once('index', '', () => indexOf(groups, info, ofGroup)),
    v2: (extensions = []) => whole('v2', extensions, (parts) => packedDocument(jsonDocument(head, parts, 'v2'))),
    v2Protobuf: (extensions = []) =>
      whole('v2 protobuf', extensions, async (parts) =>
        packedDocument([await inPieces(protobufDocument(head, parts), systemClock)]),
      ),
  }
}

let last: Promise<unknown> = Promise.resolve()

/** Builds that were asked for together would hold the memory of each. */
function inOrder<T>(build: () => Promise<T>): Promise<T> {
  const made = last.then(build)
  last = made.catch(() => undefined)
  return made
}

const ofGroups = new WeakMap<
  object,
  { readonly kinds: readonly object[]; readonly document: Promise<PackedDocument> }
>()

/** Most groups stay as they are when a kind is defined: their documents do, too. */
function documentOfGroup(group: readonly DescribedKind[], info: Info): Promise<PackedDocument> {
  const kinds = group.map(({ resource }) => resource)
  const [first = kinds] = kinds
  const known = ofGroups.get(first)
  if (known?.kinds.length === kinds.length && known.kinds.every((kind, index) => kind === kinds[index])) {
    return known.document
  }
  const document = inOrder(async () => {
    const pieces = jsonDocument({ openapi: '3.0.0', info }, await documentParts(group, 'v3'), 'v3')
    return packedDocument(pieces, { hash: stampOf(group, info) })
  })
  const made = { kinds, document }
  ofGroups.set(first, made)
  document.catch(() => ofGroups.get(first) === made && ofGroups.delete(first))
  return document
}

/**
 * The hash of a document of definitions, which needs no document; undefined: kinds of the group are built in. Another version of the program
 * may describe them otherwise, and clients keep a document for good.
 */
function stampOf(group: readonly DescribedKind[], { version }: Info): string | undefined {
  const stamps = group.map(({ resource }) => resource.defined?.stamp)
  return stamps.includes(undefined) ? undefined : hashOf(JSON.stringify([version, ...stamps]))
}

/** By the path of their documents. */
function groupsOf(served: KindRegistry['served']): Groups {
  const groups = new Map<string, DescribedKind[]>()
  const add = (kind: DescribedKind) => {
    const path = documentPath(kind.resource)
    groups.set(path, [...(groups.get(path) ?? []), kind])
  }
  for (const resource of served) add({ resource, subresources: resource.subresources, isStored: true })
  for (const resource of Object.values<Resource>(reviewKinds)) add({ resource, subresources: {}, isStored: false })
  return groups
}

function documentPath(resource: Resource): string {
  return `${resource.group === '' ? 'api' : 'apis'}/${apiVersionOf(resource)}`
}

async function indexOf(
  groups: Groups,
  info: Info,
  ofGroup: (path: string) => Promise<PackedDocument> | undefined,
): Promise<PackedDocument> {
  const paths: { [path: string]: JsonSchema } = {}
  for (const [path, group] of groups) {
    const hash = stampOf(group, info) ?? (await ofGroup(path))?.hash
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }
    await setImmediate()
  }
  return packedDocument([JSON.stringify({ paths })])
}
