/** The answers below `/openapi`: the documents, in the forms and with the headers by which clients keep them. */
import { inGroupOrder } from '../../../api/registration/group-order.ts'
import type { DiscoveryNeeds } from '../aggregator/discovery-needs.ts'
import type { ExtensionDescription } from '../aggregator/extension-description.ts'
import { hashOf, type PackedDocument } from '../aggregator/packed-document.ts'
import type { ApiResponse } from '../wire/answers.ts'
import { prefersProtobufDocument } from '../wire/content-negotiation.ts'
import { openApiDocuments } from './documents.ts'

export type OpenApiRequest = {
  readonly path: string
  readonly query: URLSearchParams
  readonly accept: string | undefined
  readonly acceptEncoding?: string | undefined
  /** The hash in quotes that the client has a document of. */
  readonly ifNoneMatch: string | undefined
}

/** Undefined where the path is not one of these. */
export async function openApiAnswer(
  request: OpenApiRequest,
  needs: DiscoveryNeeds,
  version: string,
): Promise<ApiResponse | undefined> {
  const { path, accept } = request
  const documents = openApiDocuments(needs.kinds, version)
  if (path === '/openapi/v2') {
    const extensions = descriptionsIn(needs)
    return prefersProtobufDocument(accept)
      ? await documentAnswer(await documents.v2Protobuf(extensions), request, protobufType)
      : await documentAnswer(await documents.v2(extensions), request)
  }
  if (path === '/openapi/v3') return documentAnswer(await withExtensions(await documents.index(), needs), request)
  const [, group] = /^\/openapi\/v3\/(.+)$/.exec(path) ?? []
  const document = group === undefined ? undefined : await documents.ofGroup(group)
  return document && documentAnswer(document, request)
}

/** By the priority of their versions, in which the document has them (kube-aggregator, pkg/controllers/openapi/aggregator/priority.go). */
function descriptionsIn({ apiServices, extensions }: DiscoveryNeeds): readonly ExtensionDescription[] {
  const all = (apiServices?.remotes() ?? []).map((apiService) => {
    const { group = '', version = '', groupPriorityMinimum, versionPriority } = apiService.spec
    return { apiService, group, version, groupPriorityMinimum, versionPriority }
  })
  const ordered = inGroupOrder(all).flatMap(({ versions }) => versions)
  return ordered.flatMap(({ apiService }) => extensions?.description(apiService) ?? [])
}

type Document = Pick<PackedDocument, 'hash' | 'bytes'> & { readonly gzip?: Buffer }

/** The descriptions of extension servers are theirs: the paths lead to them. */
async function withExtensions(own: PackedDocument, { apiServices, extensions }: DiscoveryNeeds): Promise<Document> {
  const found = (apiServices?.remotes() ?? []).flatMap((apiService) => {
    const hash = extensions?.descriptionHash(apiService)
    if (hash === undefined) return []
    const { group = '', version = '' } = apiService.spec
    const path = `apis/${group}/${version}`
    return [[path, { serverRelativeURL: `/openapi/v3/${path}${hash === '' ? '' : `?hash=${hash}`}` }] as const]
  })
  if (found.length === 0) return own
  const { paths } = JSON.parse((await own.bytes()).toString()) as { readonly paths: object }
  const bytes = Buffer.from(JSON.stringify({ paths: { ...paths, ...Object.fromEntries(found) } }))
  return { bytes: async () => bytes, hash: hashOf(bytes) }
}

/** Spelled with a dot: with the `@` of the request kubectl cannot parse it. */
const protobufType = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

/** A document under its own hash never changes (kube-openapi, handler3: HandleGroupVersion). */
async function documentAnswer(
  { bytes, gzip, hash }: Document,
  { query, ifNoneMatch, acceptEncoding }: OpenApiRequest,
  contentType = 'application/json',
): Promise<ApiResponse> {
  const etag = `"${hash}"`
  const isImmutable = query.get('hash') === hash
  const answer = { kind: 'document', contentType, etag, isImmutable } as const
  if (matches(ifNoneMatch, etag)) return { ...answer, code: 304, bytes: nothing }
  return takesGzip(acceptEncoding) && gzip !== undefined
    ? { ...answer, code: 200, bytes: gzip, encoding: 'gzip' }
    : { ...answer, code: 200, bytes: await bytes() }
}

const nothing = Buffer.alloc(0)

/** Named, and not with weight 0 (RFC 9110, 12.5.3). */
function takesGzip(acceptEncoding = ''): boolean {
  return acceptEncoding.split(',').some((one) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(one))
}

/** `*`, or one of the tags of the list (RFC 9110, 13.1.2; weakly compared). */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((one) => ['*', etag].includes(one.trim().replace(/^W\//, '')))
}
